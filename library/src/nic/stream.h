// Operations of one endpoint towards one peer, with what a NIC of put and get does not have: words that are
// stored after everything before them, and a flush that reports arrival. Both are built only on the
// guarantees of the plugin (peerway/nic.h):
//
//   puts in order | gets behind puts | a word                          | a flush
//   yes           | yes              | put                             | get of a marker
//   no            | yes              | put once a marker's get is back | get of a marker
//   yes           | no               | put                             | put of a marker, got until it shows
//   no            | no               | stored by the peer              | the peer answers
//
// In the last case nothing proves that a put has arrived: the peer gets the bytes itself, on request.
#pragma once

#include <cstdint>
#include <memory>

#include "nic/endpoint.h"

namespace pw::nic {

/// A store of a 64-bit word to memory of a peer.
struct WordStore {
  RemoteMemory* remote;
  uint64_t offset;
  uint64_t value;
};

/// Many blocks of one size, as far apart as the strides say.
struct Blocks {
  uint64_t count;
  uint64_t bytes;
  uint64_t to_stride;
  uint64_t from_stride;
};

/// Nothing here waits: PW_NIC_BUSY says that nothing was started, and to progress() and try again. Every
/// `done` may be null, and is called from Endpoint::progress(); none may call back into the endpoint.
class Stream {
 public:
  virtual ~Stream();
  Stream(const Stream&) = delete;

  /// A key of this peer, made usable. Throws Error with what the NIC says.
  std::unique_ptr<RemoteMemory> import(const pw_nic_key& key);

  /// As the entry of the plugin: `memory` null copies the bytes, at most Endpoint::copied(). `done`: `data`
  /// may be changed.
  virtual pw_nic_status put(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory,
                            uint64_t bytes, pw_nic_done* done) = 0;
  virtual pw_nic_status get(RemoteMemory& remote, uint64_t offset, void* data, Memory& memory, uint64_t bytes,
                            pw_nic_done* done);

  /// The same with many blocks, where the NIC can (has_strided()).
  [[nodiscard]] virtual bool has_strided() const { return ops_.put_strided != nullptr; }
  virtual pw_nic_status put_strided(RemoteMemory& remote, uint64_t offset, const void* data, Memory& memory,
                                    const Blocks& blocks, pw_nic_done* done);

  /// A put and a word after it, both started or neither; where the NIC can, as one operation.
  virtual pw_nic_status put_word(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory,
                                 uint64_t bytes, const WordStore& word, pw_nic_done* done) = 0;

  /// Stores a word at the peer once all puts before it are in place there; words of a stream are stored in
  /// order. Puts that follow may come before it.
  virtual pw_nic_status store_word(const WordStore& word) = 0;

  /// `done` once all puts and words before it are in place at the peer.
  virtual pw_nic_status flush(pw_nic_done* done) = 0;

 protected:
  friend class Endpoint;
  friend class RemoteMemory;
  Stream(Endpoint& endpoint, std::shared_ptr<Connection> connection);

  /// Does what waited for progress. `unfinished`: there may be more.
  virtual unsigned advance(bool& unfinished) = 0;
  virtual void forget(const RemoteMemory&) {}  ///< drops words that wait to be stored there

  pw_nic_status start_word(const WordStore& word);
  pw_nic_status start_get_of_marker(pw_nic_done* done);
  void activate() { endpoint_.activate(*this); }
  /// What the NIC may still call, once this stream is gone.
  void keep(std::shared_ptr<void> operations) { endpoint_.abandoned_.push_back(std::move(operations)); }
  static void call(pw_nic_done* done, pw_nic_status status) {
    if (done != nullptr) done->call(done, status);
  }
  /// Ends all that follows with that status, when it is one that lasts.
  pw_nic_status record_failure(pw_nic_status status) {
    if (status == PW_NIC_UNREACHABLE || status == PW_NIC_BROKEN) failed_ = status;
    return status;
  }

  Endpoint& endpoint_;
  const pw_nic_ops& ops_;
  pw_nic* const nic_;
  ControlSpan& control_;
  std::shared_ptr<Connection> connection_;
  pw_nic_remote* const peer_control_;
  pw_nic_memory* const control_memory_;
  uint64_t* const landing_;  ///< of markers
  pw_nic_status failed_ = PW_NIC_OK;
  bool active_ = false;  ///< in the endpoint's list
};

/// Makes the stream that the NIC's guarantees allow.
std::unique_ptr<Stream> make_stream(Endpoint& endpoint, std::shared_ptr<Connection> connection);

}  // namespace pw::nic
