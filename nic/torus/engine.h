// The torus' engine stands for the processor on a NIC: a thread that carries out posted operations when they
// are due, answers peers and notices their deaths, while the host does something else.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "torus/exchange.h"

namespace pw::torus {

/// The objects that an endpoint's engine works with; they outlive the engine.
struct Surroundings {
  const TorusFile& file;
  Directory& directory;
  const EndpointAddress& self;
  uint32_t node;
  Secret key;  ///< key of the datagrams
};

class Engine {
 public:
  static constexpr uint32_t kInFlight = 4096;

  Engine(const Surroundings& around, Grid grid, Wire& wire, Counters& counters);
  ~Engine();
  Engine(const Engine&) = delete;

  void add(const std::shared_ptr<TorusPeer>& peer);
  void remove(const std::shared_ptr<TorusPeer>& peer);
  void add(const std::shared_ptr<Memory>& memory);
  void remove(const std::shared_ptr<Memory>& memory);

  /// Returns PW_NIC_BUSY, or accepts the operation.
  pw_nic_status submit(OperationPointer operation);

  using Completed = std::vector<std::pair<pw_nic_done*, pw_nic_status>>;
  /// Takes the operations that ended since the last call; almost free if there are none.
  void take_completed(Completed& completed);

  /// Waits briefly until everything accepted has ended; ends the rest with PW_NIC_BROKEN.
  void finish();

 private:
  struct Due {
    uint64_t time, turn;
    OperationPointer operation;
    bool has_bytes;  ///< a get whose bytes are here and whose modelled time is not over
    friend bool operator<(const Due& a, const Due& b) {  // puts the earliest at the top of the heap
      return std::pair(a.time, a.turn) > std::pair(b.time, b.turn);
    }
  };
  void run();
  uint64_t step(uint64_t now);
  void wait(uint64_t now, uint64_t until);
  void wake();
  void dispatch(OperationPointer operation, uint64_t now);
  void move(OperationPointer operation, uint64_t now);
  void complete(OperationPointer operation, pw_nic_status status);
  void push(uint64_t time, OperationPointer operation, bool has_bytes);
  uint64_t arrival(const std::vector<Link>& links, uint64_t bytes, uint64_t now);
  uint64_t due_of(Operation& operation, uint64_t now);
  uint64_t apply_deaths(uint64_t now);
  void find_routes(TorusPeer& peer) const;
  bool open_wire();
  [[nodiscard]] bool sends_from(uint32_t number, const sockaddr_in& from) const;
  void watch(const TorusPeer& peer);
  void check_processes(uint64_t now);
  void lose(const std::shared_ptr<TorusPeer>& peer);

  static constexpr uint64_t kSocketTag = ~uint64_t{0}, kAlarmTag = ~uint64_t{1}, kJobMemoryTag = ~uint64_t{2};

  const Surroundings around_;
  Shared& shared_;
  Grid grid_;
  Wire& wire_;
  Counters& counters_;
  const bool modelled_;  ///< the duration of operations is modelled
  std::mutex mutex_;
  Exchange exchange_;
  Random random_;
  std::vector<Due> heap_;
  uint64_t turn_ = 0;
  uint32_t in_flight_ = 0;
  uint64_t next_leaves_ = 0;  ///< modelled time at which the next operation may leave
  bool node_dead_ = false;    ///< this endpoint's node is dead
  std::vector<std::shared_ptr<TorusPeer>> peers_;
  std::vector<std::shared_ptr<Memory>> memories_;  ///< indexed by slot
  std::map<int, Descriptor> watched_;              ///< pidfds by process
  Completed completed_;
  std::atomic<bool> some_completed_{false};
  bool process_ended_ = false, finished_ = false;
  uint64_t next_check_ = 0;
  std::atomic<bool> stop_{false}, woken_{false};
  std::atomic<uint64_t> asleep_until_{0};
  Descriptor alarm_, poll_;
  std::thread thread_;
};

/// Makes the epoll descriptor `poll` report `tag` when `descriptor` is readable.
void poll_for(int poll, int descriptor, uint64_t tag);

/// Whether the core that posts operations cannot do them itself.
bool needs_engine(const TorusFile& file);

}  // namespace pw::torus
