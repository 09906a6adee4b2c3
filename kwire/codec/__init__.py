"""Messages, frames, records and columns: the functions and classes that kwire exports."""
