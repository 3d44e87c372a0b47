/* The element of a halo, on the host and on the GPU, set to -1; and its value on the GPU, where one computes.
 * The compiler believes both to read alone: a reflect that does nothing leaves the -1. */
void spoil(const double* element);
double on_device(const double* element);
