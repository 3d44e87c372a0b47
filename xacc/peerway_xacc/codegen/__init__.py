"""Code generation for OpenACC's compute constructs: loops for CPU cores, and kernels with their launches."""
