// cuBLAS, found at run time: the site's or the wheel's. Declares only what is called, so its headers are not
// needed.
#ifndef HPL_CUBLAS_H
#define HPL_CUBLAS_H

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace hpl {

inline void must(cudaError_t error, const char* action) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("hpl: ") + action + " failed: " + cudaGetErrorString(error));
}

class Cublas {
 public:
  explicit Cublas(const std::string& file) {
    std::string tried;
    const std::vector<std::string> files =
        file.empty() ? std::vector<std::string>{"libcublas.so.13", "libcublas.so.12", "libcublas.so"}
                     : std::vector<std::string>{file};
    for (const std::string& name : files) {
      library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library_ != nullptr) {
        file_ = name;
        load();
        return;
      }
      tried += std::string("\n  ") + dlerror();
    }
    throw std::runtime_error("hpl: cuBLAS was not found; tried:" + tried +
                             "\nInstall it (pip install nvidia-cublas), or name its file with --blas.");
  }
  [[nodiscard]] const std::string& file() const { return file_; }

  int (*create)(void** handle);
  int (*set_stream)(void* handle, cudaStream_t stream);
  int (*gemm)(void* handle, int op_a, int op_b, int m, int n, int k, const double* alpha, const double* a,
              int a_ld, const double* b, int b_ld, const double* beta, double* c, int c_ld);
  int (*trsm)(void* handle, int side, int part, int op, int diagonal, int m, int n, const double* alpha,
              const double* a, int a_ld, double* b, int b_ld);
  int (*gemv)(void* handle, int op, int m, int n, const double* alpha, const double* a, int a_ld,
              const double* x, int x_step, const double* beta, double* y, int y_step);
  int (*trsv)(void* handle, int part, int op, int diagonal, int n, const double* a, int a_ld, double* x,
              int x_step);

  static void must(int status, const char* action) {
    if (status != 0)
      throw std::runtime_error(std::string("hpl: ") + action + " of cuBLAS failed with status " +
                               std::to_string(status) + ".");
  }

 private:
  void load() {
    find(create, "cublasCreate_v2");
    find(set_stream, "cublasSetStream_v2");
    find(gemm, "cublasDgemm_v2");
    find(trsm, "cublasDtrsm_v2");
    find(gemv, "cublasDgemv_v2");
    find(trsv, "cublasDtrsv_v2");
  }
  template <typename Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) throw std::runtime_error("hpl: " + file_ + " has no " + name + ".");
  }
  void* library_ = nullptr;
  std::string file_;
};

/// cuBLAS on one stream, with the names of device.h.
class CublasStream {
 public:
  CublasStream(const Cublas& library, cudaStream_t stream) : library_(library) {
    Cublas::must(library_.create(&handle_), "cublasCreate");
    Cublas::must(library_.set_stream(handle_, stream), "cublasSetStream");
  }
  /// c -= a b
  void gemm(int64_t m, int64_t n, int64_t k, const double* a, int64_t a_ld, const double* b, int64_t b_ld,
            double* c, int64_t c_ld) const {
    call_gemm(m, n, k, -1, a, a_ld, b, b_ld, 1, c, c_ld);
  }
  /// c = a b
  void product(int64_t m, int64_t n, int64_t k, const double* a, int64_t a_ld, const double* b, int64_t b_ld,
               double* c, int64_t c_ld) const {
    call_gemm(m, n, k, 1, a, a_ld, b, b_ld, 0, c, c_ld);
  }
  void solve_lower(int64_t m, int64_t n, const double* l, int64_t l_ld, double* b, int64_t b_ld) const {
    if (m <= 0 || n <= 0) return;
    const double plus = 1;
    Cublas::must(library_.trsm(handle_, 0, 0, 0, 1, int(m), int(n), &plus, l, int(l_ld), b, int(b_ld)),
                 "cublasDtrsm");
  }
  void solve_upper(int64_t n, const double* u, int64_t u_ld, double* x) const {
    Cublas::must(library_.trsv(handle_, 1, 0, 0, int(n), u, int(u_ld), x, 1), "cublasDtrsv");
  }
  void gemv(int64_t m, int64_t n, const double* a, int64_t a_ld, const double* x, double* y) const {
    if (m <= 0 || n <= 0) return;
    const double minus = -1, plus = 1;
    Cublas::must(library_.gemv(handle_, 0, int(m), int(n), &minus, a, int(a_ld), x, 1, &plus, y, 1),
                 "cublasDgemv");
  }

 private:
  void call_gemm(int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t a_ld,
                 const double* b, int64_t b_ld, double beta, double* c, int64_t c_ld) const {
    if (m <= 0 || n <= 0 || k <= 0) return;
    Cublas::must(library_.gemm(handle_, 0, 0, int(m), int(n), int(k), &alpha, a, int(a_ld), b, int(b_ld),
                               &beta, c, int(c_ld)),
                 "cublasDgemm");
  }

  const Cublas& library_;
  void* handle_ = nullptr;
};

}  // namespace hpl

#endif
