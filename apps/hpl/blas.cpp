#include "blas.h"

#include <dlfcn.h>

#include <optional>
#include <stdexcept>
#include <vector>

namespace hpl {

namespace {

constexpr const char* kUsual[] = {"libopenblas.so.0", "libopenblas.so", "libblis.so.4", "libblis.so",
                                  "libblas.so.3"};
constexpr const char* kPrefixes[] = {"", "scipy_"};  // SciPy's wheel contains an OpenBLAS with a prefix

std::optional<Blas> loaded;

void* symbol(void* library, const char* name) {
  for (const char* prefix : kPrefixes)
    if (void* found = dlsym(library, (std::string(prefix) + name).c_str())) return found;
  return nullptr;
}

void set_threads(void* library, int threads) {
  for (const char* name : {"openblas_set_num_threads", "bli_thread_set_num_threads"})
    if (void* set = symbol(library, name)) {
      if (name[0] == 'b')
        reinterpret_cast<void (*)(int64_t)>(set)(threads);
      else
        reinterpret_cast<void (*)(int)>(set)(threads);
    }
}

}  // namespace

const Blas& load_blas(const std::string& file, int threads) {
  std::vector<std::string> files;
  if (file.empty())
    files.assign(std::begin(kUsual), std::end(kUsual));
  else
    files.push_back(file);
  std::string tried;
  for (const std::string& name : files) {
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      tried += std::string("\n  ") + dlerror();
      continue;
    }
    Blas found{reinterpret_cast<Blas::Gemm*>(symbol(library, "dgemm_")),
               reinterpret_cast<Blas::Trsm*>(symbol(library, "dtrsm_")),
               reinterpret_cast<Blas::Gemv*>(symbol(library, "dgemv_")), name};
    if (found.gemm != nullptr && found.trsm != nullptr && found.gemv != nullptr) {
      if (threads > 0) set_threads(library, threads);
      return loaded.emplace(std::move(found));
    }
    tried += "\n  " + name + " has no dgemm_, dtrsm_ and dgemv_ of 32-bit integers";
    dlclose(library);
  }
  throw std::runtime_error("hpl: no BLAS was found; tried:" + tried +
                           "\nInstall libopenblas0-pthread or libblis4, or name one with --blas FILE.");
}

const Blas& blas() { return loaded ? *loaded : load_blas("", 0); }

void Blas::minus_product(int64_t m, int64_t n, int64_t k, const double* a, int64_t a_ld, const double* b,
                         int64_t b_ld, double* c, int64_t c_ld) const {
  if (m <= 0 || n <= 0 || k <= 0) return;
  const Int sizes[] = {Int(m), Int(n), Int(k)}, lds[] = {Int(a_ld), Int(b_ld), Int(c_ld)};
  const double minus = -1, one = 1;
  gemm("N", "N", &sizes[0], &sizes[1], &sizes[2], &minus, a, &lds[0], b, &lds[1], &one, c, &lds[2], 1, 1);
}

void Blas::solve(char part, int64_t m, int64_t n, const double* t, int64_t t_ld, double* b,
                 int64_t b_ld) const {
  if (m <= 0 || n <= 0) return;
  const Int sizes[] = {Int(m), Int(n)}, lds[] = {Int(t_ld), Int(b_ld)};
  const double one = 1;
  trsm("L", part == 'L' ? "L" : "U", "N", part == 'L' ? "U" : "N", &sizes[0], &sizes[1], &one, t, &lds[0], b,
       &lds[1], 1, 1, 1, 1);
}

void Blas::minus_vector(int64_t m, int64_t n, const double* a, int64_t a_ld, const double* x,
                        double* y) const {
  if (m <= 0 || n <= 0) return;
  const Int sizes[] = {Int(m), Int(n)}, lds[] = {Int(a_ld), 1};
  const double minus = -1, one = 1;
  gemv("N", &sizes[0], &sizes[1], &minus, a, &lds[0], x, &lds[1], &one, y, &lds[1], 1);
}

}  // namespace hpl
