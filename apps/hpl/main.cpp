// hpl: reads the options, checks that they are possible, and runs the tests one after the other.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>

#include "module.h"
#include "options.h"
#include "report.h"
#include "staging.h"
#include "system.h"

namespace hpl {

namespace {

/// The ranks on this rank's host.
struct Place {
  int local_rank = 0, local_size = 0;
  static Place of(Comm& comm) {
    struct Name {
      char text[256] = "";
    } mine;
    gethostname(mine.text, sizeof mine.text - 1);
    std::vector<Name> all(static_cast<size_t>(comm.size()));
    comm.all_gather(&mine, sizeof mine, all.data());
    Place place;
    for (int rank = 0; rank < comm.size(); ++rank) {
      if (std::strcmp(all[static_cast<size_t>(rank)].text, mine.text) != 0) continue;
      place.local_rank += rank < comm.rank();
      ++place.local_size;
    }
    return place;
  }
};

int cpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::unique_ptr<Device> make_device(const Options& options, const Place& place, int threads) {
  if (options.device == "host") return make_host_device(options.blas, threads);
  using Make = Device*(int, const char*);
  return std::unique_ptr<Device>(of_module<Make>("device_" + options.device, "hpl_make_gpu_device")(
      place.local_rank, options.blas.c_str()));
}

/// Returns a network that goes through host memory, if that is necessary; the same decision at all ranks.
std::unique_ptr<Comm> staging(const Options& options, Comm& comm, Device& device) {
  const bool needed = !device.on_host() && !comm.takes_device_memory();
  if (options.staging == "no" || (options.staging == "auto" && !needed)) return nullptr;
  return through_host(comm, device);
}

/// Returns what every rank may allocate: the smallest, over all ranks, of a rank's share of its device's free
/// memory.
uint64_t share(Comm& comm, const Device& device, const Place& place) {
  const uint64_t mine =
      device.on_host() ? device.room() / static_cast<uint64_t>(place.local_size) : device.room();
  std::vector<uint64_t> all(static_cast<size_t>(comm.size()));
  comm.all_gather(&mine, sizeof mine, all.data());
  return *std::min_element(all.begin(), all.end());
}

void check_memory(int64_t n, int64_t nb, const Grid& grid, const Device& device, uint64_t share) {
  const uint64_t needed = bytes_needed(Layout::of(grid, n, nb), device);
  if (needed <= share) return;
  int64_t fits = 0, too_large = n;
  while (too_large - fits > 1) {
    const int64_t middle = fits + (too_large - fits) / 2;
    (bytes_needed(Layout::of(grid, middle, nb), device) <= share ? fits : too_large) = middle;
  }
  const auto gib = [](uint64_t bytes) {
    return std::to_string(bytes >> 30) + "." + std::to_string((bytes >> 20) % 1024 * 10 / 1024);
  };
  throw BadOption("hpl: N = " + std::to_string(n) + " with NB = " + std::to_string(nb) + " on " +
                  std::to_string(grid.rows) + " x " + std::to_string(grid.columns) + " needs " + gib(needed) +
                  " GiB a rank, and " + gib(share) + " GiB are free; the largest N that fits is " +
                  std::to_string(fits) + ".");
}

/// Returns the largest value of each member over the ranks.
Phases slowest(Comm& comm, const Phases& mine) {
  std::vector<Phases> all(static_cast<size_t>(comm.size()));
  comm.all_gather(&mine, sizeof mine, all.data());
  Phases most;
  for (const Phases& phases : all) {
    most.panel = std::max(most.panel, phases.panel);
    most.broadcast = std::max(most.broadcast, phases.broadcast);
    most.swap = std::max(most.swap, phases.swap);
    most.update = std::max(most.update, phases.update);
    most.solve = std::max(most.solve, phases.solve);
  }
  return most;
}

std::vector<double> of_all(Comm& comm, double mine) {
  std::vector<double> all(static_cast<size_t>(comm.size()));
  comm.all_gather(&mine, sizeof mine, all.data());
  return all;
}

class Tests {
 public:
  Tests(const Options& options, Comm& comm, Device& device, uint64_t share)
      : options_(options), comm_(comm), device_(device), share_(share) {}

  /// Returns the exit status of the program.
  int run() {
    for (const auto& [rows, columns] : options_.grids)
      for (const int64_t n : options_.n)
        for (const int64_t nb : options_.nb)
          for (const int depth : options_.depths)
            for (const std::string& broadcast : options_.broadcasts)
              for (const Method& method : methods(depth))
                test_case(Grid::of(rows, columns, comm_.rank(), options_.by_rows), n, nb, method, broadcast);
    if (comm_.rank() == 0 && !options_.json) print_end(passed_, failed_);
    return failed_ == 0 ? 0 : 1;
  }

 private:
  /// Returns all ways to factorize panels.
  [[nodiscard]] std::vector<Method> methods(int depth) const {
    std::vector<Method> all;
    for (const Looking rfact : options_.rfacts)
      for (const Looking pfact : options_.pfacts)
        for (const int leaf : options_.leaves) all.push_back({leaf, depth, pfact, rfact, {}});
    return all;
  }
  void test_case(const Grid& grid, int64_t n, int64_t nb, Method method, const std::string& broadcast) {
    System system(comm_, device_, Layout::of(grid, n, nb));
    Result result{};
    result.n = n, result.nb = nb, result.grid = grid;
    const std::vector<Sending> sendings = this->sendings(system, grid, broadcast);
    result.measured = sendings.size() > 1;
    method.sending = system.quickest(sendings);
    result.method = method;
    system.generate(options_.constant);
    const auto before = device_.gemm_spent();
    timed(system, result);
    const auto after = device_.gemm_spent();
    const auto gemm_s = of_all(comm_, after.first - before.first);
    const auto gemm_flop = of_all(comm_, after.second - before.second);
    double seconds = 0, flop = 0;
    for (const double per_rank : gemm_s) seconds += per_rank;
    for (const double per_rank : gemm_flop) flop += per_rank;
    result.gemm_seconds = *std::max_element(gemm_s.begin(), gemm_s.end());
    result.gemm_gflops = seconds > 0 ? flop / seconds / 1e9 : 0;
    const auto order = static_cast<double>(n);
    result.memory_share = 8 * order * order / (static_cast<double>(share_) * comm_.size());
    rate(result);
    result.cpu_panels = system.cpu_panels;
    if (result.info == 0) {
      if (!options_.solution.empty()) write(system.solution());
      result.residual = system.residual(options_.constant);
    }
    result.passed = result.info == 0 && result.residual < options_.threshold;
    ++(result.passed ? passed_ : failed_);
    if (comm_.rank() != 0) return;
    if (options_.json)
      print_json(result, options_, comm_.name(), device_.name());
    else
      print(result, options_);
  }

  /// Returns the ways to choose from: with one or two ranks in a row, all variants are alike.
  [[nodiscard]] std::vector<Sending> sendings(System& system, const Grid& grid,
                                              const std::string& broadcast) const {
    std::vector<Variant> variants{Variant::ring};
    if (broadcast != "auto")
      variants = {variant_of(broadcast)};
    else if (grid.columns > 2)
      variants = all_variants();
    const bool may =
        options_.start == "stream" || (options_.start == "auto" && !device_.on_host() && grid.columns > 1);
    const bool can = may && system.prepare_panels();
    if (options_.start == "stream" && !can)
      throw BadOption("hpl: --start stream, but " + comm_.name() +
                      " starts nothing in a stream; give --start host, or --comm peerway.");
    std::vector<Sending> sendings;
    for (const Variant variant : variants) {
      if (options_.start != "stream") sendings.push_back({variant, false});
      if (can && sends_whole(variant)) sendings.push_back({variant, true});
    }
    if (sendings.empty())
      throw BadOption("hpl: --start stream with --bcast " + broadcast +
                      ", whose root sends parts of panels; give another broadcast, or --start host.");
    return sendings;
  }

  void timed(System& system, Result& result) {
    Phases mine;
    comm_.barrier();
    result.started = std::time(nullptr);
    const auto began = std::chrono::steady_clock::now();
    result.info = system.factorize(result.method, mine);
    if (result.info == 0) system.solve(mine);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    result.ended = std::time(nullptr);
    const auto all = of_all(comm_, took.count());
    result.seconds = *std::max_element(all.begin(), all.end());
    result.phases = slowest(comm_, mine);
  }

  void rate(Result& result) const {
    const auto [flops, formula] = device_.peak();
    const double each = options_.rpeak > 0 ? options_.rpeak : flops / 1e9;
    if (each <= 0) return;
    result.rpeak_gflops = each * comm_.size();
    result.rpeak_formula =
        std::to_string(comm_.size()) + " ranks x " + (options_.rpeak > 0 ? "the Gflops of --rpeak" : formula);
  }

  void write(const std::vector<double>& x) const {
    if (comm_.rank() != 0) return;
    std::ofstream file(options_.solution, std::ios::binary);
    file.write(reinterpret_cast<const char*>(x.data()), static_cast<std::streamsize>(8 * x.size()));
    if (!file) throw std::runtime_error("hpl: " + options_.solution + " cannot be written.");
  }

  const Options& options_;
  Comm& comm_;
  Device& device_;
  uint64_t share_;
  int passed_ = 0, failed_ = 0;
};

int run(const Options& options) {
  const auto comm = make_comm(options.comm, options.timeout_s);
  try {
    for (const auto& [rows, columns] : options.grids)
      if (static_cast<int64_t>(rows) * columns != comm->size())
        throw BadOption("hpl: a grid of " + std::to_string(rows) + " x " + std::to_string(columns) + " has " +
                        std::to_string(static_cast<int64_t>(rows) * columns) + " ranks, and " +
                        std::to_string(comm->size()) +
                        " were started; give --grid PxQ with P x Q = " + std::to_string(comm->size()) + ".");
    const Place place = Place::of(*comm);
    const int threads = options.threads > 0 ? options.threads : std::max(1, cpus() / place.local_size);
    const auto device = make_device(options, place, threads);
    const std::unique_ptr<Comm> staged = staging(options, *comm, *device);
    Comm& network = staged ? *staged : *comm;
    const uint64_t free = share(*comm, *device, place);
    for (const auto& [rows, columns] : options.grids)
      for (const int64_t n : options.n)
        for (const int64_t nb : options.nb)
          check_memory(n, nb, Grid::of(rows, columns, comm->rank(), options.by_rows), *device, free);
    if (comm->rank() == 0 && !options.json) print_head(options, network.name(), device->name(), threads);
    return Tests(options, network, *device, free).run();
  } catch (const BadOption& error) {  // the same at all ranks, so one of them prints it
    if (comm->rank() == 0) std::fprintf(stderr, "%s\n", error.what());
    comm->barrier();
    return 2;
  }
}

/// Used before there is a network: whether the launcher calls this rank the first.
bool first_rank() {
  for (const char* name : {"PEERWAY_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* rank = std::getenv(name)) return std::strcmp(rank, "0") == 0;
  return true;
}

int run_and_say(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    if (!options.help) return run(options);
    if (first_rank()) std::printf("%s", help().c_str());
    return 0;
  } catch (const BadOption& error) {
    if (first_rank()) std::fprintf(stderr, "%s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace

}  // namespace hpl

int main(int argc, char** argv) { return hpl::run_and_say(argc, argv); }
