"""Every kernel in NumPy: the specification the native kernels are held to."""
