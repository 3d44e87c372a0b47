#include "report.h"

#include <cstdio>
#include <ctime>
#include <vector>

namespace hpl {

namespace {

constexpr const char* kDouble =
    "================================================================================";
constexpr const char* kSingle =
    "--------------------------------------------------------------------------------";

std::string time_of_day(long when) {
  const std::time_t time = when;
  return std::ctime(&time);
}

std::string name_of(Looking looking) {
  return looking == Looking::left ? "Left" : looking == Looking::crout ? "Crout" : "Right";
}

/// Returns HPL's code of the variant: W, the order of the ranks, and the numbers of the method; panels are
/// halved (2).
std::string variant_code(const Result& result) {
  return std::string("W") + (result.grid.by_rows ? "R" : "C") + std::to_string(result.method.depth) +
         std::to_string(static_cast<int>(result.method.sending.variant)) + name_of(result.method.rfact)[0] +
         "2" + name_of(result.method.pfact)[0] + std::to_string(result.method.leaf);
}

const char* starter(const Result& result) {
  return result.method.sending.by_stream ? "a stream" : "the host";
}

std::string panels_by(const Result& result) {
  return result.cpu_panels.empty() ? "GPUs" : "CPUs: " + result.cpu_panels;
}

/// Formats a JSON string.
std::string quoted(std::string text) {
  for (char& letter : text)
    if (letter == '"' || letter == '\\' || letter == '\n') letter = ' ';
  return '"' + text + '"';
}

void print_more(const Result& result) {
  const Phases& t = result.phases;
  const int ranks = result.grid.rows * result.grid.columns;
  std::printf("Panels: by the %s\n", panels_by(result).c_str());
  std::printf("Broadcast: %s, started by %s%s. Of the slowest rank's host, in seconds:\n",
              to_string(result.method.sending.variant).c_str(), starter(result),
              result.measured ? ", the quickest measured" : "");
  std::printf("Max aggregated wall time rfact . . . : %18.2f\n", t.panel);
  std::printf("Max aggregated wall time bcast . . . : %18.2f\n", t.broadcast);
  std::printf("Max aggregated wall time update  . . : %18.2f\n", t.swap + t.update);
  std::printf("+ Max aggregated wall time laswp . . : %18.2f\n", t.swap);
  std::printf("Max aggregated wall time up tr sv  . : %18.2f\n", t.solve);
  if (result.gemm_gflops > 0)
    std::printf("DGEMM: %.1f Gflops a rank in %.2f s; the whole reached %.3f of that rate on %d rank%s\n",
                result.gemm_gflops, result.gemm_seconds, result.gflops() / (result.gemm_gflops * ranks),
                ranks, ranks == 1 ? "" : "s");
  std::printf("Memory: 8 N^2 is %.3f of what was free\n", result.memory_share);
  if (result.rpeak_gflops > 0)
    std::printf("Rpeak: %.1f Gflops = %s; reached %.3f of it\n", result.rpeak_gflops,
                result.rpeak_formula.c_str(), result.gflops() / result.rpeak_gflops);
}

/// Prints a line of the legend like HPL's HPL_pdinfo(): eight values per line, nine characters each.
template <typename List, typename Say>
void print_values(const char* name, const List& values, Say&& say) {
  std::printf("\n%-7s:", name);
  size_t count = 0;
  for (const auto& value : values) {
    if (count > 0 && count % 8 == 0) std::printf("\n        ");
    std::printf("%8s ", say(value).c_str());
    ++count;
  }
}

void print_legend(const Options& options) {
  std::printf(
      "An explanation of the input/output parameters follows:\n"
      "T/V    : Wall time / encoded variant.\n"
      "N      : The order of the coefficient matrix A.\n"
      "NB     : The partitioning blocking factor.\n"
      "P      : The number of process rows.\n"
      "Q      : The number of process columns.\n"
      "Time   : Time in seconds to solve the linear system.\n"
      "Gflops : Rate of execution for solving the linear system.\n\n"
      "The following parameter values will be used:\n");
  const auto number = [](auto value) { return std::to_string(value); };
  const auto name = [](const std::string& value) { return value; };
  print_values("N", options.n, number);
  print_values("NB", options.nb, number);
  std::printf("\nPMAP   : %s process mapping", options.by_rows ? "Row-major" : "Column-major");
  print_values("P", options.grids, [](const auto& grid) { return std::to_string(grid.first); });
  print_values("Q", options.grids, [](const auto& grid) { return std::to_string(grid.second); });
  print_values("PFACT", options.pfacts, name_of);
  print_values("NBMIN", options.leaves, number);
  print_values("NDIV", std::vector<int>{2}, number);
  print_values("RFACT", options.rfacts, name_of);
  print_values("BCAST", options.broadcasts, name);
  print_values("DEPTH", options.depths, number);
  std::printf(
      "\nSWAP   : Spread-roll (long)\nL1     : no-transposed form\nU      : no-transposed form\n"
      "EQUIL  : no\nALIGN  : 8 double precision words\n\n%s\n\n",
      kSingle);
}

}  // namespace

void print_head(const Options& options, const std::string& comm, const std::string& device, int threads) {
  std::printf("%s\nHigh-Performance Linpack; the table is that of HPLinpack\n%s\n\n", kDouble, kDouble);
  print_legend(options);
  std::printf("Network: %s\nDevice: %s%s\n", comm.c_str(), device.c_str(),
              options.device == "host" ? (", " + std::to_string(threads) + " threads a rank").c_str() : "");
  for (const std::string& note : options.notes) std::printf("%s\n", note.c_str());
  std::printf(
      "\n- The matrix A is randomly generated for each test.\n"
      "- The following scaled residual check will be computed:\n"
      "      ||Ax-b||_oo / ( eps * ( || x ||_oo * || A ||_oo + || b ||_oo ) * N )\n"
      "- The relative machine precision (eps) is taken to be               %e\n"
      "- Computational tests pass if scaled residuals are less than %19.1f\n\n",
      0x1p-53, options.threshold);
  std::fflush(stdout);
}

void print(const Result& result, const Options& options) {
  std::printf("%s\nT/V                N    NB     P     Q               Time                 Gflops\n%s\n",
              kDouble, kSingle);
  std::printf("%-8s%12lld %5lld %5d %5d %18.2f     %18.4e\n", variant_code(result).c_str(),
              static_cast<long long>(result.n), static_cast<long long>(result.nb), result.grid.rows,
              result.grid.columns, result.seconds, result.gflops());
  std::printf("HPL_pdgesv() start time %s\n", time_of_day(result.started).c_str());
  std::printf("HPL_pdgesv() end time   %s\n", time_of_day(result.ended).c_str());
  print_more(result);
  std::printf("%s\n", kSingle);
  if (result.info != 0)
    std::printf(
        "The matrix is singular: the pivot of column %lld is exactly zero (info = %lld) ...... FAILED\n",
        static_cast<long long>(result.info), static_cast<long long>(result.info));
  else
    std::printf("||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= %16.8e ...... %s\n", result.residual,
                result.residual < options.threshold ? "PASSED" : "FAILED");
  std::fflush(stdout);
}

void print_json(const Result& r, const Options& options, const std::string& comm, const std::string& device) {
  std::printf(
      "{\"record\": \"hpl\", \"variant\": \"%s\", \"n\": %lld, \"nb\": %lld, \"p\": %d, \"q\": %d, "
      "\"bcast\": \"%s\", \"start\": \"%s\", \"panels\": %s, \"comm\": \"%s\", \"device\": \"%s\", "
      "\"seconds\": %.6f, "
      "\"gflops\": %.6g, "
      "\"residual\": %.8e, \"threshold\": %g, \"info\": %lld, \"passed\": %s, \"gemm_gflops_rank\": %.6g, "
      "\"gemm_s\": %.6f, \"phases_s\": {\"panel\": %.6f, \"bcast\": %.6f, \"swap\": %.6f, \"update\": %.6f, "
      "\"solve\": %.6f}, \"memory_share\": %.4f, \"rpeak_gflops\": %.6g, \"rpeak\": "
      "\"%s\"}\n",
      variant_code(r).c_str(), static_cast<long long>(r.n), static_cast<long long>(r.nb), r.grid.rows,
      r.grid.columns, to_string(r.method.sending.variant).c_str(),
      r.method.sending.by_stream ? "stream" : "host", quoted(panels_by(r)).c_str(), comm.c_str(),
      device.c_str(), r.seconds, r.gflops(), r.info != 0 ? -1 : r.residual, options.threshold,
      static_cast<long long>(r.info), r.passed ? "true" : "false", r.gemm_gflops, r.gemm_seconds,
      r.phases.panel, r.phases.broadcast, r.phases.swap, r.phases.update, r.phases.solve, r.memory_share,
      r.rpeak_gflops, r.rpeak_formula.c_str());
  std::fflush(stdout);
}

void print_end(int passed, int failed) {
  std::printf("%s\n\nFinished %6d tests with the following results:\n", kDouble, passed + failed);
  std::printf("         %6d tests completed and passed residual checks,\n", passed);
  std::printf("         %6d tests completed and failed residual checks,\n", failed);
  std::printf("         %6d tests skipped because of illegal input values.\n%s\n\nEnd of Tests.\n%s\n", 0,
              kSingle, kDouble);
}

}  // namespace hpl
