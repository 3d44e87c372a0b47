// The output: HPL's own table, which its parsers read, and more below it.
#ifndef HPL_REPORT_H
#define HPL_REPORT_H

#include <string>

#include "options.h"
#include "system.h"

namespace hpl {

/// The result of one test; the times are those of the slowest rank.
struct Result {
  int64_t n, nb;
  Grid grid;
  Method method;
  bool measured = false;  // how panels are sent was chosen by measuring
  double seconds = 0, residual = 0;
  int64_t info = 0;
  Phases phases;
  double gemm_gflops = 0;  // per rank: the mean over its large products
  double gemm_seconds = 0;
  double rpeak_gflops = 0;  // of all ranks; 0: unknown
  std::string rpeak_formula;
  std::string cpu_panels;   // why CPUs factorized some or all panels; "" if GPUs did
  double memory_share = 0;  // 8 N^2 divided by the free memory of the ranks' devices
  long started = 0, ended = 0;
  bool passed = false;

  [[nodiscard]] double gflops() const {
    const auto order = static_cast<double>(n);
    return (2.0 / 3 * order * order * order + 1.5 * order * order) / seconds / 1e9;
  }
};

void print_head(const Options& options, const std::string& comm, const std::string& device, int threads);
void print(const Result& result, const Options& options);
void print_json(const Result& result, const Options& options, const std::string& comm,
                const std::string& device);
void print_end(int passed, int failed);

}  // namespace hpl

#endif
