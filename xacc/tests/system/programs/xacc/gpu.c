/* Scenarios that need a GPU, or a simulated one. The first argument is the expected value of pwx_gpu. */
#include "gpu.h"

int main(int argc, char** argv) {
  pwx_begin(&argc, &argv);
  CHECK(pwx_gpu() == atoi(argv[1]), "%d", pwx_gpu());
  if (pwx_gpu()) test_gpu_first_launch();
  test_gpu_reflect();
  if (pwx_gpu()) {
    test_gpu_data();
    test_gpu_functions();
    test_gpu_kernels();
    test_gpu_reductions();
    test_gpu_launches();
  }
  test_gpu_values();
  pwx_reduce(NULL, PWX_SUM, PWX_INT, &failures, 1, HERE);
  pwx_reduce(NULL, PWX_SUM, PWX_INT, &checks, 1, HERE);
  if (rank() == 0) printf("%d checks, %d failed\n", checks, failures);
  return failures != 0;
}
