// An open endpoint, which implements the entries of the plugin. Its calls are made one at a time; the
// engine's thread runs beside them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/secret.h"
#include "torus/engine.h"
#include "torus/options.h"

namespace pw::torus {

class Endpoint {
 public:
  static constexpr uint64_t kLargest = 1u << 30, kCopied = 4096;
  static constexpr size_t kEndedAtOnce = 4096;  ///< limit of operations that ended at once and were not
                                                ///< reported yet

  /// Throws Failure, or Error for an invalid torus file.
  explicit Endpoint(const pw_nic_options& options);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;

  void query(pw_nic_info& info) const;
  void address(pw_nic_address& address) const;

  std::shared_ptr<TorusPeer> connect(const pw_nic_address& address);
  void disconnect(const std::shared_ptr<TorusPeer>& peer);
  std::shared_ptr<Memory> add_memory(const pw_nic_span& span, pw_nic_key& key);
  void remove_memory(const std::shared_ptr<Memory>& memory);
  std::shared_ptr<PeerMemory> import(const TorusPeer& peer, const pw_nic_key& key) const;

  /// The arguments of a put or get.
  struct Access {
    const std::shared_ptr<TorusPeer>& peer;
    const std::shared_ptr<PeerMemory>& target;
    uint64_t offset;
    void* data;
    const std::shared_ptr<Memory>* memory;
    uint64_t bytes;
    pw_nic_done* done;
  };
  pw_nic_status put(const Access& access) { return start(access, true); }
  pw_nic_status get(const Access& access) { return start(access, false); }
  unsigned progress();

 private:
  struct Ended {
    pw_nic_done* done;
    pw_nic_status status;
  };
  void join_job(uint64_t job);
  [[nodiscard]] bool has_other_hosts() const;
  [[nodiscard]] bool is_sent_datagrams() const;
  void need_port(const EndpointAddress& place) const;
  [[nodiscard]] std::vector<uint32_t> nodes_here() const;
  [[nodiscard]] bool at_once(const Access& access) const;
  pw_nic_status start(const Access& access, bool put);
  pw_nic_status check(const Access& access, bool put) const;
  pw_nic_status post(const Access& access, bool put);
  void count(TorusPeer& peer, bool put, uint64_t bytes);
  void settle(const TorusPeer& peer);

  Options options_;
  std::string file_text_;
  TorusFile file_;
  std::optional<Secret> secret_;
  Grid grid_;
  const bool direct_;  ///< nothing is modelled or injected, so the core that posts an operation moves its
                       ///< bytes
  uint64_t session_;   ///< peers read it to test whether they may access this process
  std::unique_ptr<Directory> directory_;
  EndpointAddress self_{};
  uint32_t node_ = 0;
  Counters posted_, moved_;  ///< counts of the calls, and of the engine
  LinkCounters links_;
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::shared_ptr<TorusPeer>> peers_;
  std::vector<uint32_t> free_slots_;
  uint32_t next_slot_ = 0;
  std::vector<Ended> ended_;  ///< operations that ended at once and were not reported yet
  Engine::Completed completed_;
};

}  // namespace pw::torus
