// Set up, warm up, run, check, print.
#include "program.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <stdexcept>

#include "check.h"

namespace stencil {

namespace {

struct Times {
  std::vector<double> batch_ns;  // of the slowest rank
  double wall_ns = 0;            // of the whole run on this rank
  double cpu_ns = 0;             // of this rank's threads
};

struct Phases {
  double interior_ns, boundary_ns, all_ns, exchange_ns;
};

double wall_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::nano>(now).count();
}

double cpu_ns() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& t) {
    return 1e9 * static_cast<double>(t.tv_sec) + 1e3 * static_cast<double>(t.tv_usec);
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

void set_field(const Problem& problem, const std::vector<double>& start) {
  const std::vector<double> zeros(start.size());
  problem.device.copy(problem.field[0], start.data(), problem.lattice.bytes());
  problem.device.copy(problem.field[1], zeros.data(), problem.lattice.bytes());
  problem.group.barrier();  // nobody's halo arrives before the field does
}

std::vector<double> slowest(std::vector<double> mine, Group& group) {
  std::vector<double> all(mine.size() * static_cast<size_t>(group.size()));
  group.all_gather(mine.data(), mine.size() * sizeof(double), all.data());
  for (size_t i = 0; i < all.size(); ++i) mine[i % mine.size()] = std::max(mine[i % mine.size()], all[i]);
  return mine;
}

Times timed(const Problem& problem, Variant& variant) {
  problem.group.barrier();
  Times times;
  const double wall = wall_ns(), cpu = cpu_ns();
  std::vector<double> batches = variant.run(problem.options.iterations, problem.options.batch);
  times.wall_ns = wall_ns() - wall;
  times.cpu_ns = cpu_ns() - cpu;
  times.batch_ns = slowest(std::move(batches), problem.group);
  return times;
}

double sweep_alone(const Problem& problem, Part part, uint64_t times) {
  const pw_stream queue = problem.device.queue(false);
  problem.device.sweep(part, problem.lattice, problem.field[0], problem.field[1], queue);
  problem.device.mark(queue);
  for (uint64_t i = 0; i < times; ++i)
    problem.device.sweep(part, problem.lattice, problem.field[i % 2], problem.field[(i + 1) % 2], queue);
  problem.device.mark(queue);
  problem.device.wait(queue);
  return problem.device.marks()[1] / static_cast<double>(times);
}

std::optional<Phases> phases(const Problem& problem, Variant& variant) {
  const uint64_t times = std::min<uint64_t>(problem.options.iterations, 1000);
  problem.group.barrier();
  const std::optional<double> exchange = variant.exchange_alone(times);
  if (!exchange) return std::nullopt;
  problem.group.barrier();
  const std::vector<double> worst =
      slowest({sweep_alone(problem, Part::interior, times), sweep_alone(problem, Part::boundary, times),
               sweep_alone(problem, Part::all, times), *exchange},
              problem.group);
  return Phases{worst[0], worst[1], worst[2], worst[3]};
}

void print_json(const Problem& problem, const Times& times, const std::optional<Verdict>& verdict,
                const std::optional<Phases>& phases) {
  const Options& options = problem.options;
  const Lattice& lattice = problem.lattice;
  std::printf("{\"variant\": \"%s\", \"device\": \"%s\", \"ranks\": %d, \"grid\": [%d, %d]",
              problem.variant.c_str(), options.cuda ? "cuda" : "host", problem.group.size(), options.grid[Y],
              options.grid[X]);
  std::printf(
      ", \"local\": [%llu, %llu], \"global\": [%llu, %llu], \"border\": \"%s\", \"iterations\": %llu, "
      "\"batch\": %llu",
      static_cast<unsigned long long>(lattice.count[Y]), static_cast<unsigned long long>(lattice.count[X]),
      static_cast<unsigned long long>(lattice.global[Y]), static_cast<unsigned long long>(lattice.global[X]),
      options.periodic ? "periodic" : "fixed", static_cast<unsigned long long>(options.iterations),
      static_cast<unsigned long long>(options.batch));
  std::printf(", \"wall_ns\": %.0f, \"cpu_percent\": %.1f", times.wall_ns,
              100 * times.cpu_ns / times.wall_ns);
  if (verdict)
    std::printf(
        ", \"check\": {\"passed\": %s, \"error\": %.3e, \"tolerance\": %.3e, \"serial\": %s, \"differing\": "
        "%llu}",
        verdict->passed() ? "true" : "false", std::min(verdict->error, 1e300), verdict->tolerance,
        verdict->serial ? "true" : "false", static_cast<unsigned long long>(verdict->differing));
  if (phases)
    std::printf(
        ", \"phases_ns\": {\"interior\": %.1f, \"boundary\": %.1f, \"all\": %.1f, \"exchange\": %.1f}",
        phases->interior_ns, phases->boundary_ns, phases->all_ns, phases->exchange_ns);
  std::printf(", \"batch_ns\": [");
  for (size_t i = 0; i < times.batch_ns.size(); ++i)
    std::printf("%s%.0f", i == 0 ? "" : ", ", times.batch_ns[i]);
  std::printf("]}\n");
}

void print_text(const Problem& problem, const Times& times, const std::optional<Verdict>& verdict,
                const std::optional<Phases>& phases) {
  std::vector<double> sorted = times.batch_ns;
  std::sort(sorted.begin(), sorted.end());
  const double batch_us = 1e3 * static_cast<double>(problem.options.batch);
  std::printf("%s: %llu x %llu cells on %d x %d ranks, %llu steps: %.3f us a step (fastest batch %.3f)\n",
              problem.variant.c_str(), static_cast<unsigned long long>(problem.lattice.global[Y]),
              static_cast<unsigned long long>(problem.lattice.global[X]), problem.options.grid[Y],
              problem.options.grid[X], static_cast<unsigned long long>(problem.options.iterations),
              sorted[sorted.size() / 2] / batch_us, sorted.front() / batch_us);
  if (phases)
    std::printf("alone, us: interior %.3f, boundary %.3f, both as one %.3f, exchange %.3f\n",
                phases->interior_ns / 1e3, phases->boundary_ns / 1e3, phases->all_ns / 1e3,
                phases->exchange_ns / 1e3);
  if (verdict)
    std::printf("check %s: off the eigenmodes by %.2e (at most %.2e), %s\n",
                verdict->passed() ? "passed" : "FAILED", verdict->error, verdict->tolerance,
                !verdict->serial ? "too large for a serial run"
                : verdict->differing == 0
                    ? "the same bits as a serial run"
                    : (std::to_string(verdict->differing) + " cells differ from a serial run").c_str());
}

/// Rank 0 tells why a variant is left out.
void print_refusal(const Problem& problem, const char* why) {
  if (problem.group.rank() != 0) return;
  if (problem.options.json)
    std::printf("{\"variant\": \"%s\", \"refused\": \"%s\"}\n", problem.variant.c_str(), why);
  std::fprintf(stderr, "%s\n", why);
}

/// Returns whether the variant ran and, if that was asked, its field is right.
bool run_variant(const Problem& problem, const MakeVariant& make_variant) {
  const Options& options = problem.options;
  std::unique_ptr<Variant> variant;
  try {
    variant = make_variant(problem);
  } catch (const Refused& why) {
    print_refusal(problem, why.what());
    return false;
  }
  const std::vector<double> start = Modes(problem.lattice).after(0);
  set_field(problem, start);
  if (options.warmup > 0) variant->run(options.warmup * options.batch, options.batch);
  problem.group.barrier();  // nobody still pushes into a field that is set anew
  set_field(problem, start);
  const Times times = timed(problem, *variant);

  std::optional<Verdict> verdict;
  if (options.check) {
    std::vector<double> field(problem.lattice.cells());
    problem.device.copy(field.data(), problem.field[options.iterations % 2], problem.lattice.bytes());
    verdict = check(problem.lattice, field, options.iterations, problem.group);
  }
  std::optional<Phases> alone;
  if (options.phases) alone = phases(problem, *variant);
  if (problem.group.rank() == 0) (options.json ? print_json : print_text)(problem, times, verdict, alone);
  std::fflush(stdout);      // it is kept whatever becomes of the next variant
  problem.group.barrier();  // nobody frees what a neighbour still uses
  return !verdict || verdict->passed();
}

}  // namespace

int run(const Options& options, Group& group, Device& device, const MakeVariant& make_variant) {
  const int wanted = options.grid[Y] * options.grid[X];
  if (wanted != group.size())
    throw std::runtime_error("stencil2d: --grid " + std::to_string(options.grid[Y]) + "x" +
                             std::to_string(options.grid[X]) + " needs " + std::to_string(wanted) +
                             " ranks, and there are " + std::to_string(group.size()) +
                             "; start as many, or change the grid.");
  const Lattice lattice = make_lattice(options.global, options.grid, options.periodic, group.rank());
  double* fields[2] = {device.allocate(lattice.cells()), device.allocate(lattice.cells())};
  bool good = true;
  for (const std::string& variant : options.variants)
    good =
        run_variant({options, variant, lattice, group, device, {fields[0], fields[1]}}, make_variant) && good;
  return good ? 0 : 1;
}

}  // namespace stencil
