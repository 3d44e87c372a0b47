// Everything that plans, lanes and one-sided device functions do between two GPUs, with every byte compared.
// One JSON line a check; the exit code is 1 when one failed.
//
//   peerway run -n 2 -- plan_check [exchange|lanes|one-sided|refusals|lost-on-streams|lost-in-kernels]
//   plan_check in-turn        one process with both ranks, for compute-sanitizer
#include <array>
#include <condition_variable>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>

#include "in_turn.cuh"
#include "lanes.cuh"
#include "lost.cuh"

namespace {

using namespace check;

int gpus() {
  int count = 0;
  CUDA(cudaGetDeviceCount(&count));
  return count;
}

void exchanges(Rank& rank) {
  for (const uint64_t bytes : {1ull, 2ull, 4ull, 7ull, 8ull, 100ull, 1000ull, 4096ull, 8192ull, 65536ull,
                               65544ull, 262144ull, 1ull << 20, (1ull << 20) + 3, 8ull << 20})
    exchange_every_way(rank, {bytes, 1, bytes});
  // Units of 1, 2, 4 and 8 bytes; structs; long rows that go straight.
  for (const Layout layout : {Layout{1, 1000, 3}, Layout{2, 500, 6}, Layout{4, 500, 12}, Layout{8, 512, 24},
                              Layout{192, 16, 200}, Layout{16384, 64, 20000}, Layout{8, 40000, 64}})
    exchange_every_way(rank, layout);
  many_lanes(rank);
  for (const uint64_t bytes : {8ull, 8192ull, 1ull << 20}) {
    one_direction(rank, {bytes, 1, bytes});
    slow_partner(rank, {bytes, 1, bytes});
  }
}

void all_lanes(Rank& rank) {
  for (const uint64_t bytes : {8ull, 100ull, 1000ull, 8192ull}) lanes(rank, bytes);
}

void one_sided(Rank& rank) {
  for (const bool on_gpu : {false, true}) {
    for (const uint64_t bytes : {8ull, 1000ull, 65536ull, 4ull << 20})
      two_plans(rank, {bytes, 1, bytes}, on_gpu);
    two_plans(rank, {8, 512, 24}, on_gpu);
    for (const uint64_t bytes : {1ull, 8ull, 1024ull, 65536ull}) by_handles(rank, bytes, on_gpu);
  }
}

void refusals(Rank& rank) {
  refuse_starts(rank, gpus());
  refuse_capture(rank);
  time_out(rank);
}

constexpr struct {
  const char* name;
  void (*run)(Rank&);
} kGroups[] = {{"exchange", exchanges},
               {"lanes", all_lanes},
               {"one-sided", one_sided},
               {"refusals", refusals},
               {"lost-on-streams", lost_on_streams},
               {"lost-in-kernels", lost_in_kernels}};

int between_processes(const std::string& group) {
  auto team = peerway::Team::from_launcher();
  if (team.size() != 2) throw std::runtime_error("two ranks are needed: peerway run -n 2 -- plan_check ...");
  Rank rank(team, team.rank() % gpus(), false);
  bool known = false;
  for (const auto& checks : kGroups) {
    if (group != checks.name) continue;
    checks.run(rank);
    known = true;
  }
  if (!known) throw std::runtime_error("no checks are called " + group);
  return failures > 0 ? 1 : 0;
}

/// Two ranks as threads, which make everything together and leave the driving to one of them.
class Couple {
 public:
  Couple() {
    each([&](int rank) {
      teams_[rank] = std::make_unique<peerway::Team>(peerway::Team::create(
          rank, 2, [&, rank](void* data, size_t bytes) { broadcast(rank, data, bytes); }));
      ranks_[rank] = std::make_unique<Rank>(*teams_[rank], rank % gpus(), true);
    });
  }
  ~Couple() {
    for (auto& rank : ranks_) rank.reset();
    each([&](int rank) { teams_[rank].reset(); });
  }

  void each(const std::function<void(int)>& body) {
    auto other = std::async(std::launch::async, [&] { body(1); });
    body(0);
    other.get();
  }

  /// One thing for each rank, made by both at once.
  template <typename Thing, typename Make>
  std::array<std::unique_ptr<Thing>, 2> both(const Make& make) {
    std::array<std::unique_ptr<Thing>, 2> things;
    each([&](int rank) {
      CUDA(cudaSetDevice(ranks_[rank]->device.index));
      things[static_cast<size_t>(rank)] = make(*ranks_[rank]);
    });
    return things;
  }

 private:
  void broadcast(int rank, void* data, size_t bytes) {
    std::unique_lock lock(mutex_);
    if (rank == 0) {
      text_.assign(static_cast<char*>(data), bytes);
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return text_.size() == bytes; });
    std::memcpy(data, text_.data(), bytes);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  std::unique_ptr<peerway::Team> teams_[2];
  std::unique_ptr<Rank> ranks_[2];
};

int in_turn() {
  Couple couple;
  for (const Layout layout : {Layout{1, 1, 1}, Layout{8, 1, 8}, Layout{300, 1, 300}, Layout{8000, 1, 8000},
                              Layout{2, 50, 6}, Layout{8, 60, 24}}) {
    auto sides =
        couple.both<Side>([&](Rank& rank) { return std::make_unique<Side>(rank, layout, true, true); });
    drive_exchange(*sides[0], *sides[1], "packets in turn", 4);
  }
  for (const Layout layout : {Layout{100000, 1, 100000}, Layout{4096, 20, 5000}}) {
    auto sides = couple.both<Side>(
        [&](Rank& rank) { return std::make_unique<Side>(rank, layout, rank.rank == 0, rank.rank == 1); });
    drive_exchange(*sides[0], *sides[1], "straight in turn", 4);
  }
  auto parts = couple.both<Parts>([](Rank& rank) { return std::make_unique<Parts>(rank); });
  drive_parts(*parts[0], *parts[1]);
  return failures > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string group = argc > 1 ? argv[1] : "";
  try {
    return group == "in-turn" ? in_turn() : between_processes(group);
  } catch (const std::exception& error) {
    report(-1, group + " ended early", false, error.what());
    return 2;
  }
}
