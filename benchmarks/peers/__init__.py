"""What kwire is measured beside: Python clients in this process, Java, Rust and Go in children of their own."""
