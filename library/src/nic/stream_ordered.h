// Streams for NICs whose puts arrive in order: a word is a put.
#pragma once

#include <array>
#include <memory>

#include "nic/outstanding.h"
#include "nic/stream.h"

namespace pw::nic {

/// For NICs whose gets come behind puts: a flush is the get of a marker.
class OrderedStream : public Stream {
 public:
  OrderedStream(Endpoint& endpoint, std::shared_ptr<Connection> connection)
      : Stream(endpoint, std::move(connection)) {}

  pw_nic_status put(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory, uint64_t bytes,
                    pw_nic_done* done) override;
  pw_nic_status put_word(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory,
                         uint64_t bytes, const Word& word, pw_nic_done* done) override;
  pw_nic_status word(const Word& word) override;
  pw_nic_status flush(pw_nic_done* done) override;

 protected:
  unsigned advance(bool& unfinished) override;
  void forget(const RemoteMemory& remote) override;

  /// A word that must still be put, because the NIC had no room for it. Later words and flushes wait for it.
  Word waiting_{};
  [[nodiscard]] bool word_waits() const { return waiting_.remote != nullptr; }
};

/// For NICs whose gets may overtake puts: puts a marker with a growing value, and gets it until the value has
/// arrived. A NIC that prefers gets must have a chance to do the put, so after a get in vain there is a pause
/// of a quarter of the time since the first get.
class ProbingStream final : public OrderedStream {
 public:
  ProbingStream(Endpoint& endpoint, std::shared_ptr<Connection> connection);
  ~ProbingStream() override;

  pw_nic_status flush(pw_nic_done* done) override;

 private:
  static constexpr uint32_t kFlushes = 64;
  using Probe = Outstanding<ProbingStream>;

  unsigned advance(bool& unfinished) override;
  void poll();
  void landed(Probe& probe, pw_nic_status status);
  unsigned end_flushes(uint64_t until, pw_nic_status status);

  const uint64_t first_;  ///< markers have the values after this one, which no earlier endpoint of that
                          ///< number used
  uint64_t put_ = 0;      ///< number of markers that were put
  uint64_t seen_ = 0;     ///< number of markers that are known to have arrived
  uint64_t ended_ = 0;    ///< number of flushes that are complete
  std::array<pw_nic_done*, kFlushes> flushes_{};  ///< flush i waits for marker i + 1
  uint64_t looking_since_ = 0;                    ///< time of the first get in vain; 0: none
  uint64_t next_look_ = 0;
  std::shared_ptr<Probe> probe_;
};

}  // namespace pw::nic
