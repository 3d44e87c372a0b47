// The near end of a conformance test: an open endpoint with its memory, connected to the far end, and ways to
// wait for operations that say what went wrong.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nic/check/talk.h"
#include "nic/plugin.h"

namespace pw::nic::check {

/// A law was broken: the text says how, and what to do.
class Broken : public std::exception {
 public:
  explicit Broken(std::string how) : how_(std::move(how)) {}
  [[nodiscard]] const char* what() const noexcept override { return how_.c_str(); }

 private:
  std::string how_;
};

/// A done that counts its calls.
struct Counted : pw_nic_done {
  Counted() : pw_nic_done{&Counted::on_call} {}
  Counted(const Counted&) = delete;
  int calls = 0;
  bool outside = false;  ///< it was called while progress() was not
  pw_nic_status status = PW_NIC_OK;
  uint64_t order = 0;  ///< of the call among all

 private:
  static void on_call(pw_nic_done* done, pw_nic_status status);
};

class NearEnd {
 public:
  /// Throws Broken when the endpoint, its memory, or the far end's cannot be had.
  NearEnd(std::shared_ptr<const Plugin> plugin, uint64_t job, const std::string& configuration, int socket);
  ~NearEnd();
  NearEnd(const NearEnd&) = delete;

  static constexpr uint64_t kRoom = uint64_t{1} << 20;  ///< bytes of memory at each end
  static constexpr uint64_t kGuard = 4096;  ///< bytes of the far memory on each side that are not registered

  [[nodiscard]] const pw_nic_ops& ops() const { return plugin_->ops(); }
  [[nodiscard]] pw_nic* nic() const { return nic_; }
  [[nodiscard]] const pw_nic_info& info() const { return info_; }
  [[nodiscard]] pw_nic_peer* peer() const { return peer_; }
  [[nodiscard]] pw_nic_remote* remote() const { return remote_; }
  [[nodiscard]] pw_nic_memory* memory() const { return memory_; }
  [[nodiscard]] std::byte* at(uint64_t offset) { return room_.data() + offset; }
  [[nodiscard]] uint32_t far_number() const { return far_number_; }

  /// Asks the far end. With tell() its answer is heard later, and nothing else is asked meanwhile.
  Reply ask(const Request& request) const;
  [[nodiscard]] Bytes far_bytes(uint64_t offset, uint64_t bytes) const;  ///< of the whole far memory
  void tell(const Request& request) const;
  Reply hear() const;

  /// To be given to operations; they stay until the endpoint is closed, since a law that is broken leaves
  /// operations under way.
  Counted& fresh() { return dones_.emplace_back(); }
  std::vector<Counted*> fresh(size_t count);

  /// Fresh memory at the far end, all poison, imported.
  void renew_far_memory();

  /// Post an operation, letting the card progress while it is busy.
  pw_nic_status put(uint64_t offset, const void* data, bool copied, uint64_t bytes, pw_nic_done* done);
  pw_nic_status get(uint64_t offset, void* data, uint64_t bytes, pw_nic_done* done);
  /// The same with any entry of the card.
  pw_nic_status post(const std::function<pw_nic_status()>& entry);

  /// Puts `rounds` rounds of a block and then its word, which the far end watches meanwhile: what it saw.
  Reply watched(uint64_t bytes, uint64_t rounds,
                const std::function<pw_nic_status(const void* block, uint64_t word, pw_nic_done*)>& put_both);

  /// Until the done was called. Throws Broken when it is not.
  void wait(Counted& done, const char* of);
  void progress();

  /// The most bytes that one operation of this check may have.
  [[nodiscard]] uint64_t largest() const;

 private:
  std::shared_ptr<const Plugin> plugin_;
  int socket_;
  pw_nic* nic_ = nullptr;
  pw_nic_info info_{};
  pw_nic_peer* peer_ = nullptr;
  pw_nic_remote* remote_ = nullptr;
  pw_nic_memory* memory_ = nullptr;
  std::vector<std::byte> room_;
  std::deque<Counted> dones_;
  uint32_t far_number_ = 0;
};

}  // namespace pw::nic::check
