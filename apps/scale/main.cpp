// Builds the machine, places the ranks on it, runs the pattern for each size and prints the times.
#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>

#include "job.h"
#include "options.h"

// Must come after a header of SimGrid.
#include <simgrid/version.h>

namespace scale {

namespace {

namespace s4u = simgrid::s4u;

Job job_of(const Options& options) {
  const std::vector<s4u::Host*> hosts = build(options.shape, options.nic);
  std::vector<size_t> node_of(hosts.size());
  if (options.shuffle) {
    node_of = shuffled(hosts.size(), options.seed);
  } else if (options.shape.torus && options.pattern != "message") {
    node_of = folded(options.grid, options.shape.extents);
  } else {
    for (size_t rank = 0; rank < node_of.size(); ++rank) node_of[rank] = rank;
  }
  Job job;
  job.grid = options.grid;
  job.eager = options.eager;
  job.parts = options.parts;
  for (const size_t node : node_of) job.host_of.push_back(hosts[node]);
  return job;
}

/// How far apart neighbours of the grid are, and how many faces the busiest link carries.
struct Reach {
  double mean_hops = 0;
  size_t most_hops = 0, most_faces = 0;
};

Reach reach_of(const Job& job) {
  Reach reach;
  std::map<const s4u::Link*, size_t> faces;
  size_t messages = 0, hops = 0;
  for (size_t rank = 0; rank < job.host_of.size(); ++rank)
    for (size_t dim = 0; dim < job.grid.size(); ++dim)
      for (const bool forward : {false, true}) {
        if (job.grid[dim] == 1) continue;
        const size_t peer = neighbour(rank, job.grid, dim, forward);
        const std::vector<s4u::Link*> links = way(job.host_of[rank], job.host_of[peer]);
        for (const s4u::Link* link : links) reach.most_faces = std::max(reach.most_faces, ++faces[link]);
        reach.most_hops = std::max(reach.most_hops, links.size());
        hops += links.size();
        ++messages;
      }
  reach.mean_hops = static_cast<double>(hops) / static_cast<double>(std::max<size_t>(messages, 1));
  return reach;
}

Result run(const Options& options, s4u::Engine& engine, const Job& job, uint64_t bytes) {
  if (options.pattern == "message") return message(engine, job, bytes, options.to);
  if (options.pattern == "halo/put") return halo_put(engine, job, bytes);
  if (options.pattern == "halo/two-sided") return halo_two_sided(engine, job, bytes);
  if (options.pattern == "allreduce/rings") return allreduce_rings(engine, job, bytes);
  if (options.pattern == "allreduce/doubling") return allreduce_doubling(engine, job, bytes);
  throw std::runtime_error("scale: --pattern is '" + options.pattern + "'; --help lists them.");
}

std::string text(const char* format, auto... values) {
  char line[256];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

/// Returns further members of the JSON object that is printed for a result.
std::string more_of(const Options& options, const Job& job) {
  if (options.pattern == "message")
    return text(", \"hops\": %zu", way(job.host_of[0], job.host_of[options.to]).size());
  if (!options.pattern.starts_with("halo/")) return "";
  const Reach reach = reach_of(job);
  return text(", \"mean_hops\": %.6g, \"most_hops\": %zu, \"most_faces\": %zu", reach.mean_hops,
              reach.most_hops, reach.most_faces);
}
std::string more_of(const LinpackResult& result, uint64_t n) {
  return text(", \"n\": %llu, \"panels\": %llu, \"busy\": %.4f, \"pivot_us\": %.6g, \"shares\": %.6g",
              static_cast<unsigned long long>(n), static_cast<unsigned long long>(result.panels), result.busy,
              result.pivot_us, result.shares);
}

void print(const Job& job, const Result& result, uint64_t bytes, const std::string& more) {
  int major = 0, minor = 0, patch = 0;
  sg_version_get(&major, &minor, &patch);
  std::printf("{\"simgrid\": \"%d.%d\", \"bytes\": %llu, \"ranks\": %zu, \"us\": %.9g, \"right\": %s%s}\n",
              major, minor, static_cast<unsigned long long>(bytes), job.host_of.size(), result.us,
              result.right ? "true" : "false", more.c_str());
  std::fflush(stdout);
}

int main_of(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) return 0;
  std::vector<std::string> arguments = settings();
  arguments.insert(arguments.begin(), argv[0]);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  int count = static_cast<int>(arguments.size());
  s4u::Engine engine(&count, pointers.data());
  const Job job = job_of(options);

  if (options.pattern == "hpl") {
    for (const uint64_t n : options.n) {
      const LinpackResult result = linpack(engine, job, options.linpack, n);
      print(job, result, 8 * n * n, more_of(result, n));
    }
    return 0;
  }
  for (const uint64_t bytes : options.bytes)
    print(job, run(options, engine, job, bytes), bytes, more_of(options, job));
  return 0;
}

}  // namespace

}  // namespace scale

int main(int argc, char** argv) {
  try {
    return scale::main_of(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
