// The other end of a RequestStream (nic/stream_request.h), for an endpoint of a NIC without guarantees. It
// serves the requests of peers: gets the bytes that they want to put, stores their words in order, and
// answers.
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

  /// Looks for new peers and requests, and does what can be done now. Returns how many things happened.
  unsigned poll();
  /// Called before the memory is deregistered: nothing is stored there any more.
  void forget(const Memory& memory);

 private:
  enum class State : uint8_t {
    to_get,     ///< the get of the bytes must be started
    getting,    ///< the get is under way
    to_store,   ///< the word must be stored, once everything before it is in place
    to_answer,  ///< all is done or has failed: the answer must be put
    answered
  };
  struct Client;

  /// One request under way.
  struct Task : pw_nic_done {
    Client* client = nullptr;
    State state = State::answered;
    uint64_t request = 0;              ///< its number
    pw_nic_status status = PW_NIC_OK;  ///< for the answer
    Memory* to = nullptr;              ///< memory of this process that is written
    uint64_t offset = 0, bytes = 0;    ///< in `to`
    uint64_t value = 0;                ///< of a word
    pw_nic_remote* from = nullptr;     ///< memory of the client that is read
    uint64_t from_offset = 0;
  };

  /// An endpoint that sends requests.
  struct Client {
    uint32_t number = 0;                     ///< its endpoint number
    uint32_t first = 0;                      ///< the tag of its first request (nic/message.h)
    bool broken = false;                     ///< whether it broke the rules: nothing more is served
    std::shared_ptr<Connection> connection;  ///< null until the client's hello was read
    std::vector<std::pair<pw_nic_key, pw_nic_remote*>> imported;  ///< keys of the client, kept for reuse
    uint64_t taken = 0;                                           ///< number of requests that were read
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
