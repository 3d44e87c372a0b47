// Serves requests of peers at an endpoint of a NIC without guarantees (nic/stream_request.h): gets their
// bytes, stores their words in order, and answers.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "nic/connection.h"
#include "nic/message.h"
#include "nic/stream.h"

namespace pw::nic {

class Service {
 public:
  explicit Service(Endpoint& endpoint) : endpoint_(endpoint), known_(endpoint.info().endpoints) {}
  ~Service();
  Service(const Service&) = delete;

  unsigned poll();
  /// Called before the memory is deregistered: nothing is stored there any more.
  void forget(const Memory& memory);

 private:
  enum class State : uint8_t { to_get, getting, to_store, to_answer, answered };
  struct Client;

  struct Task : pw_nic_done {
    Client* client = nullptr;
    State state = State::answered;
    uint64_t request = 0;
    pw_nic_status status = PW_NIC_OK;
    Memory* to = nullptr;
    uint64_t offset = 0, bytes = 0, value = 0;
    pw_nic_remote* from = nullptr;
    uint64_t from_offset = 0;
  };

  /// An endpoint that sends requests.
  struct Client {
    uint32_t number = 0;
    uint32_t first = 0;
    bool broken = false;
    std::shared_ptr<Connection> connection;  ///< null until the client's hello was read
    std::vector<std::pair<pw_nic_key, pw_nic_remote*>> imported;
    uint64_t taken = 0;  ///< number of requests that were read
    uint64_t ended = 0;  ///< number of leading requests that were answered
    std::array<Task, kSlots> tasks;
  };

  unsigned look_for_clients();
  unsigned serve(Client& client);
  bool take_request(Client& client);
  void hello(Client& client, MessageReader& reader);
  void read_get(Task& task, MessageReader& reader);
  void read_store(Task& task, MessageReader& reader);
  bool step(Task& task, bool all_before_in_place);
  bool get(Task& task);
  bool answer(Task& task);
  pw_nic_status find(Task& task, const pw_nic_key& key);
  pw_nic_remote* import(Client& client, const pw_nic_key& key, pw_nic_status& status);
  static bool idle(const Client& client);
  static void landed(pw_nic_done* done, pw_nic_status status);
  bool release(Client& client);

  Endpoint& endpoint_;
  std::vector<uint32_t> known_;  ///< by number: the first tag of the client of that number
  uint32_t next_look_ = 0;
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace pw::nic
