// The stream for a NIC whose puts may overtake one another, but whose gets read after all earlier puts. To
// learn whether its puts are in place, it starts a probe: the get of a marker. Once that is back, all puts
// that were started before it are in place, and a word that must follow them is put.
#pragma once

#include <array>
#include <memory>

#include "nic/outstanding.h"
#include "nic/stream.h"

namespace pw::nic {

class UnorderedStream final : public Stream {
 public:
  UnorderedStream(Endpoint& endpoint, std::shared_ptr<Connection> connection);
  ~UnorderedStream() override;

  pw_nic_status put(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory, uint64_t bytes,
                    pw_nic_done* done) override;
  pw_nic_status put_strided(RemoteMemory& remote, uint64_t offset, const void* data, Memory& memory,
                            const Blocks& blocks, pw_nic_done* done) override;
  pw_nic_status put_word(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory,
                         uint64_t bytes, const WordStore& word, pw_nic_done* done) override;
  pw_nic_status store_word(const WordStore& word) override;
  pw_nic_status flush(pw_nic_done* done) override;

 private:
  static constexpr uint64_t kWaiting = 256, kProbes = 8;

  /// A word or a flush that waits until the first `after` puts are in place.
  struct Deferred {
    WordStore word;  ///< if `remote` is null, this is a flush
    pw_nic_done* done;
    uint64_t after;
  };
  struct Probe : Outstanding<UnorderedStream> {
    uint64_t covers = 0;  ///< number of puts that are in place once the probe is back
  };

  unsigned advance(bool& unfinished) override;
  void forget(const RemoteMemory& remote) override;
  pw_nic_status started(pw_nic_status status);
  pw_nic_status defer(const Deferred& deferred);
  void start_probe();
  void probe_done(Probe& probe, pw_nic_status status);
  [[nodiscard]] bool all_in_place() const { return in_place_ == puts_; }
  [[nodiscard]] uint64_t waiting() const { return entered_ - finished_; }
  Deferred& front() { return deferred_[finished_ % kWaiting]; }

  uint64_t puts_ = 0;      ///< number of puts that were started, including words
  uint64_t in_place_ = 0;  ///< number of these that are known to be in place
  uint64_t probed_ = 0;    ///< number of these that will be known to be when the probes under way are back
  uint64_t behind_ = 0;    ///< number of puts up to the last word; the next word waits for them
  uint64_t entered_ = 0;   ///< number of words and flushes that were deferred
  uint64_t finished_ = 0;  ///< number of these that are done
  std::array<Deferred, kWaiting> deferred_{};  ///< those that are not done, as a ring buffer
  std::shared_ptr<std::array<Probe, kProbes>> probes_;
};

}  // namespace pw::nic
