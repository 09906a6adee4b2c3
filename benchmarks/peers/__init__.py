"""The peers that kwire is compared with: Python clients in this process, Java, Rust and Go in child processes."""
