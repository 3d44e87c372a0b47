// An open endpoint of a NIC, the memory registered with it, and the streams to its peers. Like the plugin's
// functions, its calls are made one at a time: the owner holds a lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "nic/job.h"
#include "nic/plugin.h"

namespace pw::nic {

class Connection;
class ControlSpan;
class Endpoint;
class Service;
class Stream;

/// Memory of this process, registered with the NIC. Must be destroyed before the endpoint.
class Memory {
 public:
  ~Memory();
  Memory(const Memory&) = delete;
  [[nodiscard]] const pw_nic_key& key() const { return key_; }
  [[nodiscard]] pw_nic_memory* handle() const { return handle_; }
  [[nodiscard]] const pw_nic_span& span() const { return span_; }

 private:
  friend class Endpoint;
  Memory() = default;
  Endpoint* endpoint_ = nullptr;
  pw_nic_span span_{};
  pw_nic_memory* handle_ = nullptr;
  pw_nic_key key_{};
};

/// Memory of a peer, for use by one stream. Destroy it before the stream, and after a flush: words that still
/// wait to be stored there are dropped.
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

/// The data with which others open a stream to an endpoint. Plain bytes.
struct EndpointFacts {
  pw_nic_address address;
  pw_nic_key control;  ///< key of its control memory (nic/control.h)
  uint32_t number;
  uint32_t endpoints;
  uint32_t guarantees;
};

bool equal(const pw_nic_key& a, const pw_nic_key& b);

class Endpoint {
 public:
  /// Throws Error with the NIC's reason.
  Endpoint(std::shared_ptr<const Plugin> plugin, const Job& job, const std::string& configuration);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;

  [[nodiscard]] const Plugin& plugin() const { return *plugin_; }
  [[nodiscard]] const pw_nic_ops& ops() const { return plugin_->ops(); }
  [[nodiscard]] pw_nic* handle() const { return handle_; }
  [[nodiscard]] const pw_nic_info& info() const { return info_; }
  [[nodiscard]] const EndpointFacts& facts() const { return facts_; }

  /// Whether this end's progress() does the puts of peers, because the NIC guarantees no order.
  [[nodiscard]] bool serves() const { return service_ != nullptr; }
  /// The most bytes that a put of a stream copies from memory that is not registered.
  [[nodiscard]] uint64_t copied() const;

  /// Registers memory. Throws Error with the NIC's reason.
  std::unique_ptr<Memory> add(const pw_nic_span& span);

  /// Opens the only stream to that peer. Throws Error.
  std::unique_ptr<Stream> open(const EndpointFacts& peer);

  /// Calls the `done` of completed operations, sends words that need not wait any longer, and serves requests
  /// of peers. Returns how many things happened.
  unsigned progress();

  /// Whether operations wait for progress().
  [[nodiscard]] bool unfinished() const { return !active_.empty(); }

  /// Returns "PW_NIC_REFUSED: <the NIC's reason>".
  [[nodiscard]] std::string why(pw_nic_status status) const;

 private:
  friend class Connection;
  friend class Memory;
  friend class Service;
  friend class Stream;

  [[nodiscard]] Error failure(const std::string& action, pw_nic_status status) const;
  void query();
  void check_peer(const EndpointFacts& peer) const;
  std::shared_ptr<Connection> connect(const EndpointFacts& peer);
  [[nodiscard]] Memory* find(const pw_nic_key& key) const;
  void activate(Stream& stream);

  std::shared_ptr<const Plugin> plugin_;
  pw_nic* handle_ = nullptr;
  pw_nic_info info_{};
  EndpointFacts facts_{};
  std::unique_ptr<ControlSpan> control_;
  std::vector<Memory*> memories_;
  std::unique_ptr<Memory> control_memory_;
  std::map<uint32_t, std::weak_ptr<Connection>> connections_;  ///< by the peer's number
  std::vector<Stream*> active_;                                ///< streams with something to do at progress()
  std::vector<std::shared_ptr<void>> abandoned_;  ///< operations whose `done` the NIC may still call
  std::unique_ptr<Service> service_;
};

}  // namespace pw::nic
