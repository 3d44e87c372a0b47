#include "nic/check/end.h"

#include <cstring>

namespace pw::nic::check {
namespace {

thread_local bool progressing = false;
uint64_t calls_so_far = 0;
std::atomic<const char*> stray{nullptr};  ///< what is wrong with a call of a `done`

struct Progressing {
  Progressing() { progressing = true; }
  ~Progressing() { progressing = false; }
};

}  // namespace

const char* name_of(pw_nic_status status) {
  constexpr const char* kNames[] = {"PW_NIC_OK",      "PW_NIC_BUSY",    "PW_NIC_UNREACHABLE",
                                    "PW_NIC_REFUSED", "PW_NIC_INVALID", "PW_NIC_BROKEN"};
  return status >= 0 && status <= PW_NIC_BROKEN ? kNames[status] : "no status of nic.h";
}

void demand(pw_nic_status status, const End& end, const std::string& subject) {
  if (status != PW_NIC_OK) throw Broken{format("{} gave {}: {}", subject, name_of(status), end.why())};
}

std::string too_long(const char* entry, double took_s, double limit_s) {
  return format(
      "{}() took {:.1f} s; it must return within {:.0f} s, and put(), get() and progress() never wait: "
      "PW_NIC_BUSY says that there is no room",
      entry, took_s, limit_s);
}

void Done::on_call(pw_nic_done* called, pw_nic_status status) {
  auto* done = static_cast<Done*>(called);
  if (!progressing) {
    stray = "a completion callback was called from another place than progress() or close()";
    return;
  }
  if (!done->under_way) {
    stray = "a completion callback was called twice, or for an operation that had been refused";
    return;
  }
  done->under_way = false;
  done->status = status;
  done->order = ++calls_so_far;
  --done->end->under_way_;
  if (done->then != nullptr) done->then(*done);
  done->end->idle_.push_back(done);
}

void End::look_for_stray_calls() {
  if (const char* problem = stray.exchange(nullptr); problem != nullptr) throw Broken{problem};
}

End::End(std::shared_ptr<const Plugin> plugin, const Job& job, const std::string& configuration)
    : plugin_(std::move(plugin)) {
  const pw_nic_options options{sizeof options, job.number, configuration.c_str(),
                               reinterpret_cast<const uint8_t*>(job.secret->data())};
  const pw_nic_status status = timed("open", kSetup_s, [&] { return ops().open(&options, &nic_); });
  if (status != PW_NIC_OK) {
    nic_ = nullptr;
    if (status == PW_NIC_INVALID && !configuration.empty())
      throw WrongOptions{
          format("the NIC {} refuses the options '{}': {}", plugin_->name(), configuration, why())};
    demand(status, *this, "open()");
  }
  info_.size = sizeof info_;
  timed("query", kSetup_s, [&] { ops().query(nic_, &info_); });
  timed("address", kSetup_s, [&] { ops().address(nic_, &address_); });
  if (address_.length == 0 || address_.length > PW_NIC_ADDRESS_BYTES)
    throw Broken{
        format("address() gave {} bytes; 1 to {} are allowed", address_.length, PW_NIC_ADDRESS_BYTES)};
}

std::string End::why() const {
  const char* text = ops().why(nic_);
  return text == nullptr ? "why() gave NULL" : format("\"{}\"", text);
}

// ---- peers and memory ----

pw_nic_peer* End::connect(const pw_nic_address& address) {
  pw_nic_peer* peer = nullptr;
  demand(timed("connect", kSetup_s, [&] { return ops().connect(nic_, &address, &peer); }), *this,
         "connect()");
  return peer;
}

pw_nic_memory* End::add(const pw_nic_span& span, pw_nic_key& key) {
  pw_nic_memory* memory = nullptr;
  demand(
      timed("register_memory", kSetup_s, [&] { return ops().register_memory(nic_, &span, &memory, &key); }),
      *this,
      format("register_memory() of {} bytes {}", span.bytes,
             span.descriptor < 0 ? "without a descriptor, which must be taken,"
                                 : format("at offset {} of a descriptor", span.descriptor_offset)));
  if (key.length == 0 || key.length > PW_NIC_KEY_BYTES)
    throw Broken{format("register_memory() gave a key of {} bytes; 1 to {} are allowed", key.length,
                        PW_NIC_KEY_BYTES)};
  return memory;
}

pw_nic_remote* End::import(pw_nic_peer* peer, const pw_nic_key& key) {
  pw_nic_remote* remote = nullptr;
  demand(timed("import_key", kSetup_s, [&] { return ops().import_key(nic_, peer, &key, &remote); }), *this,
         "import_key()");
  return remote;
}

void End::disconnect(pw_nic_peer* peer) {
  timed("disconnect", kSetup_s, [&] { ops().disconnect(nic_, peer); });
}
void End::remove(pw_nic_memory* memory) {
  timed("deregister_memory", kSetup_s, [&] { ops().deregister_memory(nic_, memory); });
}
void End::release(pw_nic_remote* remote) {
  timed("release_key", kSetup_s, [&] { ops().release_key(nic_, remote); });
}

void End::close() {
  {
    const Progressing now;
    timed("close", kSetup_s, [&] { ops().close(nic_); });
  }
  nic_ = nullptr;
  look_for_stray_calls();
}

// ---- operations ----

Done& End::fresh() {
  constexpr size_t kRest = 64;  // so that a second call of a `done` hits one that is not in use again
  Done* done = nullptr;
  if (idle_.size() > kRest) {
    done = idle_.front();
    idle_.pop_front();
  } else {
    done = &dones_.emplace_back();
    done->end = this;
  }
  done->then = nullptr;
  done->status = PW_NIC_OK;
  return *done;
}

pw_nic_status End::try_put(const Move& move, Done* done) {
  return attempt("put", done, [&] {
    return ops().put(nic_, move.remote, move.offset, move.data, move.memory, move.bytes, done);
  });
}
pw_nic_status End::try_get(const Move& move, Done* done) {
  return attempt("get", done, [&] {
    return ops().get(nic_, move.remote, move.offset, move.data, move.memory, move.bytes, done);
  });
}

pw_nic_status End::put(const Move& move, Done* done) {
  return insist([&] { return try_put(move, done); });
}
pw_nic_status End::get(const Move& move, Done* done) {
  return insist([&] { return try_get(move, done); });
}

unsigned End::progress() {
  unsigned count = 0;
  {
    const Progressing now;
    count = timed("progress", kAtOnce_s, [&] { return ops().progress(nic_); });
  }
  look_for_stray_calls();
  return count;
}

void End::wait(const Done& done, const char* of) {
  for (const Deadline deadline; done.under_way && !deadline.passed();) progress();
  if (done.under_way)
    throw Broken{
        format("the done of {} was not called within {:.1f} s of progress(); every operation that was "
               "accepted ends",
               of, static_cast<double>(longest_wait_ns) / 1e9)};
}

void End::drain(const char* of, uint64_t wait_ns) {
  uint64_t before = under_way_;
  for (Deadline deadline(wait_ns); under_way_ > 0 && !deadline.passed();) {
    progress();
    if (under_way_ < before) deadline = Deadline(wait_ns);
    before = under_way_;
  }
  if (under_way_ > 0)
    throw Broken{
        format("{} operations {} have not ended within {:.1f} s of progress(); every operation that was "
               "accepted ends",
               under_way_, of, static_cast<double>(wait_ns) / 1e9)};
}

}  // namespace pw::nic::check
