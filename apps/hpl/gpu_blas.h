// A GPU's BLAS, found at run time: cuBLAS, hipBLAS or rocBLAS, the site's or a wheel's. Declares only what is
// called, so their headers are not needed.
#ifndef HPL_GPU_BLAS_H
#define HPL_GPU_BLAS_H

#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "gpu_runtime.h"

namespace hpl {

/// One of these libraries: its functions, which have the same parameters in all of them, and its numbers for
/// what the parameters choose.
struct BlasKind {
  const char *name, *create, *set_stream, *gemm, *trsm, *gemv, *trsv;
  int as_stored;  // operation: neither transposed nor conjugated
  int left_side, lower, upper, ones, any_diagonal;
};

inline constexpr BlasKind kBlasKinds[] = {
    {"cuBLAS", "cublasCreate_v2", "cublasSetStream_v2", "cublasDgemm_v2", "cublasDtrsm_v2", "cublasDgemv_v2",
     "cublasDtrsv_v2", 0, 0, 0, 1, 1, 0},
    {"hipBLAS", "hipblasCreate", "hipblasSetStream", "hipblasDgemm", "hipblasDtrsm", "hipblasDgemv",
     "hipblasDtrsv", 111, 141, 122, 121, 132, 131},
    {"rocBLAS", "rocblas_create_handle", "rocblas_set_stream", "rocblas_dgemm", "rocblas_dtrsm",
     "rocblas_dgemv", "rocblas_dtrsv", 111, 141, 122, 121, 132, 131},
};

#if defined(HPL_ON_AMD)
inline constexpr const char* kUsualBlas[] = {
    "libhipblas.so.3", "libhipblas.so.2", "/opt/rocm/lib/libhipblas.so",
    "librocblas.so.5", "librocblas.so.4", "/opt/rocm/lib/librocblas.so"};
inline constexpr const char* kBlasAdvice =
    "Install hipblas or rocblas of ROCm, or name its file with --blas.";
#else
inline constexpr const char* kUsualBlas[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
inline constexpr const char* kBlasAdvice =
    "Install cuBLAS (pip install nvidia-cublas), or name its file with --blas.";
#endif

class GpuBlas {
 public:
  explicit GpuBlas(const std::string& file) {
    std::string tried;
    const std::vector<std::string> files =
        file.empty() ? std::vector<std::string>(std::begin(kUsualBlas), std::end(kUsualBlas))
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
    throw std::runtime_error("hpl: no BLAS for the GPU was found; tried:" + tried + "\n" + kBlasAdvice);
  }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const BlasKind& kind() const { return *kind_; }

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

  void must(int status, const char* function) const {
    if (status != 0)
      throw std::runtime_error(std::string("hpl: ") + function + " failed with status " +
                               std::to_string(status) + ".");
  }

 private:
  void load() {
    for (const BlasKind& kind : kBlasKinds)
      if (dlsym(library_, kind.create) != nullptr) kind_ = &kind;
    if (kind_ == nullptr) throw std::runtime_error("hpl: " + file_ + " is no cuBLAS, hipBLAS or rocBLAS.");
    find(create, kind_->create);
    find(set_stream, kind_->set_stream);
    find(gemm, kind_->gemm);
    find(trsm, kind_->trsm);
    find(gemv, kind_->gemv);
    find(trsv, kind_->trsv);
  }
  template <typename Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) throw std::runtime_error("hpl: " + file_ + " has no " + name + ".");
  }
  void* library_ = nullptr;
  const BlasKind* kind_ = nullptr;
  std::string file_;
};

/// The BLAS on one stream, with the names of device.h.
class GpuBlasStream {
 public:
  GpuBlasStream(const GpuBlas& library, cudaStream_t stream) : library_(library), kind_(library.kind()) {
    library_.must(library_.create(&handle_), kind_.create);
    library_.must(library_.set_stream(handle_, stream), kind_.set_stream);
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
    library_.must(library_.trsm(handle_, kind_.left_side, kind_.lower, kind_.as_stored, kind_.ones, int(m),
                                int(n), &plus, l, int(l_ld), b, int(b_ld)),
                  kind_.trsm);
  }
  void solve_upper(int64_t n, const double* u, int64_t u_ld, double* x) const {
    library_.must(
        library_.trsv(handle_, kind_.upper, kind_.as_stored, kind_.any_diagonal, int(n), u, int(u_ld), x, 1),
        kind_.trsv);
  }
  void gemv(int64_t m, int64_t n, const double* a, int64_t a_ld, const double* x, double* y) const {
    if (m <= 0 || n <= 0) return;
    const double minus = -1, plus = 1;
    library_.must(
        library_.gemv(handle_, kind_.as_stored, int(m), int(n), &minus, a, int(a_ld), x, 1, &plus, y, 1),
        kind_.gemv);
  }

 private:
  void call_gemm(int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t a_ld,
                 const double* b, int64_t b_ld, double beta, double* c, int64_t c_ld) const {
    if (m <= 0 || n <= 0 || k <= 0) return;
    library_.must(library_.gemm(handle_, kind_.as_stored, kind_.as_stored, int(m), int(n), int(k), &alpha, a,
                                int(a_ld), b, int(b_ld), &beta, c, int(c_ld)),
                  kind_.gemm);
  }

  const GpuBlas& library_;
  const BlasKind& kind_;
  void* handle_ = nullptr;
};

}  // namespace hpl

#endif
