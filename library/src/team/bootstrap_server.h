// The bootstrap server: a thread of rank 0 to which every rank, rank 0 included, is connected. It admits
// processes that know the job's secret, carries the data of all_gathers, and reports lost ranks to all.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "team/accept_queue.h"
#include "team/channel.h"
#include "team/gathers.h"
#include "team/wakeup.h"

namespace pw {

class BootstrapServer {
 public:
  /// Starts the thread. `own` is the connection of rank 0 itself. The listeners are closed as soon as all
  /// ranks have joined. If ranks are missing at `deadline`, the team fails at all ranks.
  BootstrapServer(int size, const Secret& secret, std::vector<Descriptor> listeners, Descriptor own,
                  uint64_t deadline);
  /// Waits for the thread. It ends when the last client is gone, soon after rank 0 has left, or at once
  /// when rank 0's connection breaks.
  ~BootstrapServer();
  /// Makes the thread end soon, without waiting for the goodbyes of others.
  void hurry() { hurried_.store(true); }
  /// Waits at most `ns` for the thread to end; returns whether it has ended.
  [[nodiscard]] bool ends_within(uint64_t ns);
  /// For a forked child, in which the thread does not exist.
  void forget() { thread_.detach(); }

 private:
  enum class State : uint8_t {
    fresh,
    challenged,
    joined
  };  ///< only rank 0's own connection is ever fresh
      ///< here
  struct Connection {
    Channel channel;
    State state = State::fresh;
    wire::Hello hello;
    bool closing = false;
  };

  void run();
  void serve();
  void poll_once();
  void receive(Connection& connection);
  void handle(Connection& connection, const Message& message);
  void challenge(Connection& connection, const wire::Hello& hello);
  void join(Connection& connection, const Message& message);
  void welcome_all();
  void send(const std::vector<Gathers::Answer>& answers);
  void lose(uint32_t rank, wire::How how);
  void fail_all(pw_status status, const std::string& why);
  void fail_late();
  void finish();

  const uint32_t size_;
  const Secret secret_;
  const uint64_t deadline_;
  Gathers gathers_;
  AcceptQueue accept_queue_;
  std::vector<std::unique_ptr<Connection>>
      connections_;                          ///< authenticated connections; rank 0's own is the first
  std::map<uint32_t, Connection*> clients_;  ///< by rank: clients that have joined and not left
  std::vector<wire::Identity> roster_;
  bool complete_ = false;               ///< all ranks have joined
  bool own_joined_ = false;             ///< rank 0 has joined
  SharedBytes failure_;                 ///< why there will be no team; sent to all who join
  uint64_t linger_until_ = PW_FOREVER;  ///< set when rank 0 has left
  bool over_ = false;
  std::atomic<bool> hurried_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;  ///< protected by the mutex
  std::thread thread_;
};

}  // namespace pw
