// An open endpoint in a process of the conformance tests. It checks how long each entry of the plugin takes,
// and where and how often each `done` is called.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "base/format.h"
#include "nic/check/deadline.h"
#include "nic/check/findings.h"
#include "nic/job.h"
#include "nic/plugin.h"

namespace pw::nic::check {

class End;

/// A `done` that knows whether it may be called. They are reused, the one that was unused longest first.
struct Done : pw_nic_done {
  Done() : pw_nic_done{&Done::on_call} {}
  Done(const Done&) = delete;
  End* end = nullptr;
  bool under_way = false;
  pw_nic_status status = PW_NIC_OK;
  uint64_t order = 0;             ///< position of its call among all calls
  void (*then)(Done&) = nullptr;  ///< called when the `done` is called
  void* context = nullptr;
  uint64_t number = 0;

 private:
  static void on_call(pw_nic_done* done, pw_nic_status status);
};

/// The arguments of one operation.
struct Move {
  pw_nic_remote* remote;
  uint64_t offset;
  void* data;
  pw_nic_memory* memory;  ///< null: a put whose bytes are copied
  uint64_t bytes;
};

class End {
 public:
  /// Opens the endpoint. Throws Broken.
  End(std::shared_ptr<const Plugin> plugin, const Job& job, const std::string& configuration);
  End(const End&) = delete;

  [[nodiscard]] const pw_nic_ops& ops() const { return plugin_->ops(); }
  [[nodiscard]] pw_nic* nic() const { return nic_; }
  [[nodiscard]] const pw_nic_info& info() const { return info_; }
  [[nodiscard]] const pw_nic_address& address() const { return address_; }
  [[nodiscard]] bool states(uint32_t guarantee) const { return (info_.guarantees & guarantee) != 0; }
  [[nodiscard]] std::string why() const;  ///< what the plugin says about the last failure, in quotes

  /// Throw Broken if the plugin refuses.
  pw_nic_peer* connect(const pw_nic_address& address);
  pw_nic_memory* add(const pw_nic_span& span, pw_nic_key& key);
  pw_nic_remote* import(pw_nic_peer* peer, const pw_nic_key& key);
  void disconnect(pw_nic_peer* peer);
  void remove(pw_nic_memory* memory);
  void release(pw_nic_remote* remote);
  void close();

  /// Returns a `done` for an operation; it stays allocated until the process ends.
  Done& fresh();
  /// Returns a Done whose operation was BUSY and not tried again. The Done of a refused operation was
  /// returned already.
  void give_back(Done& done) { idle_.push_back(&done); }
  /// Start an operation with a `done`, or without. May return PW_NIC_BUSY.
  pw_nic_status try_put(const Move& move, Done* done);
  pw_nic_status try_get(const Move& move, Done* done);
  /// The same with another entry.
  template <typename Entry>
  pw_nic_status attempt(const char* name, Done* done, Entry&& entry);
  /// Repeats the attempt while the NIC is busy. Throws Broken if it stays busy.
  template <typename Attempt>
  pw_nic_status insist(Attempt&& attempt);
  pw_nic_status put(const Move& move, Done* done);
  pw_nic_status get(const Move& move, Done* done);

  unsigned progress();
  /// Throw Broken if the `done` is not called in time.
  void wait(const Done& done, const char* of);
  void drain(const char* of, uint64_t wait_ns = longest_wait_ns);
  [[nodiscard]] uint64_t under_way() const { return under_way_; }

 private:
  friend struct Done;
  template <typename Body>
  auto timed(const char* entry, double limit_s, Body&& body);
  static void look_for_stray_calls();

  std::shared_ptr<const Plugin> plugin_;
  pw_nic* nic_ = nullptr;
  pw_nic_info info_{};
  pw_nic_address address_{};
  std::deque<Done> dones_;
  std::deque<Done*> idle_;
  uint64_t under_way_ = 0;
};

/// "PW_NIC_OK"
const char* name_of(pw_nic_status status);
/// Throws Broken unless it is PW_NIC_OK.
void demand(pw_nic_status status, const End& end, const std::string& subject);

// ---- implementation ----

inline constexpr double kAtOnce_s = 1, kSetup_s = 10;

std::string too_long(const char* entry, double took_s, double limit_s);

template <typename Body>
auto End::timed(const char* entry, double limit_s, Body&& body) {
  const auto judge = [&] {
    const double took = Watchdog::leave();
    if (took > limit_s) throw Broken{too_long(entry, took, limit_s)};
  };
  Watchdog::enter(entry);
  if constexpr (std::is_void_v<decltype(body())>) {
    body();
    judge();
  } else {
    const auto result = body();
    judge();
    return result;
  }
}

template <typename Entry>
pw_nic_status End::attempt(const char* name, Done* done, Entry&& entry) {
  if (done != nullptr) {
    done->under_way = true;
    ++under_way_;
  }
  const pw_nic_status status = timed(name, kAtOnce_s, entry);
  if (status != PW_NIC_OK && done != nullptr && done->under_way) {
    done->under_way = false;
    --under_way_;
    done->status = status;
    if (status != PW_NIC_BUSY) idle_.push_back(done);  // otherwise it is tried again with the same Done
  }
  look_for_stray_calls();
  return status;
}

template <typename Attempt>
pw_nic_status End::insist(Attempt&& attempt) {
  pw_nic_status status = attempt();
  if (status != PW_NIC_BUSY) return status;
  for (const Deadline deadline; !deadline.passed();) {
    progress();
    status = attempt();
    if (status != PW_NIC_BUSY) return status;
  }
  throw Broken{
      format("an operation was PW_NIC_BUSY for {:.1f} s of progress(), with {} others under way; room must "
             "come as operations end, also of those that failed",
             static_cast<double>(longest_wait_ns) / 1e9, under_way_)};
}

}  // namespace pw::nic::check
