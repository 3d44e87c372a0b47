// An open endpoint of a card, the memory it knows, and the streams to its peers. Like the plugin's, its calls
// are made one at a time: the owner has the lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "nic/plugin.h"

namespace pw::nic {

class Endpoint;
class Stream;

/// Memory of this process that the card knows. Must be destroyed before the endpoint.
class Memory {
 public:
  ~Memory();
  Memory(const Memory&) = delete;
  [[nodiscard]] const pw_nic_key& key() const { return key_; }
  [[nodiscard]] pw_nic_memory* handle() const { return handle_; }

 private:
  friend class Endpoint;
  Memory() = default;
  Endpoint* endpoint_ = nullptr;
  pw_nic_span span_{};
  pw_nic_memory* handle_ = nullptr;
  pw_nic_key key_{};
};

/// Memory of a peer, as one stream reaches it. Must be destroyed before the stream.
class RemoteMemory {
 public:
  ~RemoteMemory();
  RemoteMemory(const RemoteMemory&) = delete;
  [[nodiscard]] pw_nic_remote* handle() const { return handle_; }
  [[nodiscard]] const pw_nic_key& key() const { return key_; }

 private:
  friend class Stream;
  RemoteMemory() = default;
  Stream* stream_ = nullptr;
  pw_nic_remote* handle_ = nullptr;
  pw_nic_key key_{};
};

/// What an endpoint tells others so that they can open a stream to it. Plain bytes.
struct Card {
  pw_nic_address address;
  pw_nic_key control;  ///< of its markers and mailboxes
  uint32_t number;
};

class Endpoint {
 public:
  /// Throws Error with what the card says.
  Endpoint(std::shared_ptr<const Plugin> plugin, uint64_t job, const std::string& configuration);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;

  [[nodiscard]] const pw_nic_ops& ops() const { return plugin_->ops(); }
  [[nodiscard]] pw_nic* handle() const { return handle_; }
  [[nodiscard]] const pw_nic_info& info() const { return info_; }
  [[nodiscard]] const Card& card() const { return card_; }

  /// Throws Error with what the card says.
  std::unique_ptr<Memory> add(const pw_nic_span& span);

  /// The only stream to that peer. Throws Error.
  std::unique_ptr<Stream> open(const Card& peer);

  /// Lets the card call what is done, words whose turn has come go, and requests of peers be served. Returns
  /// how many things happened.
  unsigned progress();

 private:
  friend class Memory;
  friend class Stream;
  struct Control;  ///< the memory that peers' markers and mailboxes lie in
  std::shared_ptr<const Plugin> plugin_;
  pw_nic* handle_ = nullptr;
  pw_nic_info info_{};
  Card card_{};
  std::unique_ptr<Control> control_;
};

}  // namespace pw::nic
