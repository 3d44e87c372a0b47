// The hub: a thread of rank 0 to which every rank of the team, rank 0 included, is connected. It lets in who
// knows the job's secret, passes the parts of all_gathers around, and tells all when one is gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "team/channel.h"
#include "team/gathers.h"
#include "team/wake.h"

namespace pw {

class Hub {
 public:
  /// Starts the thread. `own` is the connection of rank 0 itself; the listeners are closed as soon as all
  /// ranks have joined. Ranks that have not joined at `deadline` fail the team for all.
  Hub(int size, const Secret& secret, std::vector<Descriptor> listeners, Descriptor own, uint64_t deadline);
  /// The thread ends by itself: when the last member is gone, or soon after rank 0 has left, or at once when
  /// rank 0's connection breaks. This waits for it.
  ~Hub();
  /// In a forked child, where the thread does not exist.
  void forget() { thread_.detach(); }

 private:
  enum class State : uint8_t { fresh, challenged, joined };
  struct Connection {
    Channel channel;
    State state = State::fresh;
    wire::Hello hello;
    bool closing = false;
  };

  void run();
  void serve();
  void poll_once();
  void accept_all(const Descriptor& listener);
  void receive(Connection& connection);
  void handle(Connection& connection, const Message& message);
  void challenge(Connection& connection, const Message& message);
  void join(Connection& connection, const Message& message);
  void welcome_all();
  void send(const std::vector<Gathers::Answer>& answers);
  void lose(uint32_t rank, wire::How how);
  void turn_away(Connection& connection, const std::string& why);
  void fail_all(pw_status status, const std::string& why);
  void fail_late();
  void finish();

  const uint32_t size_;
  const Secret secret_;
  const uint64_t deadline_;
  Gathers gathers_;
  std::vector<Descriptor> listeners_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::map<uint32_t, Connection*> members_;  ///< by rank: joined and not gone
  std::vector<wire::Identity> roster_;
  bool complete_ = false;               ///< all have joined
  bool own_joined_ = false;             ///< rank 0 has
  SharedBytes failure_;                 ///< why there will be no team, for all who join
  uint64_t linger_until_ = PW_FOREVER;  ///< set when rank 0 has left
  bool over_ = false;
  int turned_away_ = 0;
  std::string last_turned_away_;
  std::thread thread_;
};

}  // namespace pw
