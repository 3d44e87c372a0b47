// Calls the BLAS of a GPU in the file of the argument, here a double on the CPU, as device_gpu.cu does, and
// compares with plain loops: gpu_blas_test FILE prints which library it takes it for, and the largest
// difference.
#include "gpu_blas.h"

#include <cmath>
#include <cstdio>
#include <vector>

namespace {

using Matrix = std::vector<double>;  // by columns
constexpr int kRows = 5, kColumns = 3;

Matrix matrix(int rows, int columns, int seed) {
  Matrix values;
  for (int i = 0; i < rows * columns; ++i) values.push_back(std::sin(seed + i));
  return values;
}

double largest = 0;
void compare(const Matrix& values, const Matrix& expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    largest = std::fmax(largest, std::fabs(values[i] - expected[i]));
}

/// c + factor a b
Matrix product(const Matrix& a, const Matrix& b, Matrix c, double factor, int columns) {
  for (int j = 0; j < columns; ++j)
    for (int k = 0; k < kColumns; ++k)
      for (int i = 0; i < kRows; ++i)
        c[size_t(j * kRows + i)] += factor * a[size_t(k * kRows + i)] * b[size_t(j * kColumns + k)];
  return c;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const hpl::GpuBlas library(argv[1]);
  const hpl::GpuBlasStream blas(library, nullptr);
  const Matrix a = matrix(kRows, kColumns, 1), b = matrix(kColumns, kColumns, 20),
               c = matrix(kRows, kColumns, 40);
  Matrix result = c;
  blas.gemm(kRows, kColumns, kColumns, a.data(), kRows, b.data(), kColumns, result.data(), kRows);
  compare(result, product(a, b, c, -1, kColumns));
  result.assign(c.size(), NAN);  // what it overwrites does not matter
  blas.product(kRows, kColumns, kColumns, a.data(), kRows, b.data(), kColumns, result.data(), kRows);
  compare(result, product(a, b, Matrix(c.size()), 1, kColumns));
  result = c;
  blas.gemv(kRows, kColumns, a.data(), kRows, b.data(), result.data());
  compare(result, product(a, b, c, -1, 1));

  // Triangles times what is solved for give the right side again.
  Matrix triangle = matrix(kRows, kRows, 60), x = matrix(kRows, kColumns, 80);
  result = x;
  blas.solve_lower(kRows, kColumns, triangle.data(), kRows, result.data(), kRows);
  for (int j = 0; j < kColumns; ++j)
    for (int i = 0; i < kRows; ++i) {
      double sum = result[size_t(j * kRows + i)];
      for (int k = 0; k < i; ++k) sum += triangle[size_t(k * kRows + i)] * result[size_t(j * kRows + k)];
      compare({sum}, {x[size_t(j * kRows + i)]});
    }
  result = x;
  blas.solve_upper(kRows, triangle.data(), kRows, result.data());
  for (int i = 0; i < kRows; ++i) {
    double sum = 0;
    for (int k = i; k < kRows; ++k) sum += triangle[size_t(k * kRows + i)] * result[size_t(k)];
    compare({sum}, {x[size_t(i)]});
  }
  std::printf("%s, largest difference %.1e\n", library.kind().name, largest);
  return largest < 1e-10 ? 0 : 1;
}
