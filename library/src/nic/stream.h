// The operations of one endpoint towards one peer. Besides puts and gets they include two that a NIC with
// only put and get lacks: storing a word after everything before it, and a flush that reports arrival. How
// these two are done depends on what the plugin guarantees (peerway/nic.h):
//
//   puts in order | gets behind puts | a word                          | a flush
//   yes           | yes              | put                             | get of a marker
//   no            | yes              | put once a marker's get is back | get of a marker
//   yes           | no               | put                             | put of a marker, got until it shows
//   no            | no               | stored by the peer              | the peer answers
//
// In the last case the NIC cannot show that a put has arrived. So the peer gets the bytes itself, on request.
#pragma once

#include <cstdint>
#include <memory>

#include "nic/endpoint.h"

namespace pw::nic {

/// A 64-bit word in a peer's memory, and the value to store there.
struct WordStore {
  RemoteMemory* remote;
  uint64_t offset;
  uint64_t value;
};

/// Blocks of equal size at regular strides.
struct Blocks {
  uint64_t count;
  uint64_t bytes;
  uint64_t to_stride;
  uint64_t from_stride;
};

/// A NIC stream (docs/glossary.md); it has nothing to do with the streams of devices. No function waits.
/// PW_NIC_BUSY means that nothing was started: call progress() and try again. Every `done` may be null, and
/// is called from Endpoint::progress(). It must not call the endpoint.
class Stream {
 public:
  virtual ~Stream();
  Stream(const Stream&) = delete;

  /// Imports a key of this peer. Throws Error with the NIC's reason.
  std::unique_ptr<RemoteMemory> import(const pw_nic_key& key);

  /// Like `put` of the plugin: if `memory` is null, the bytes are copied at once, at most Endpoint::copied()
  /// of them. When `done` is called, `data` may be changed again.
  virtual pw_nic_status put(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory,
                            uint64_t bytes, pw_nic_done* done) = 0;
  virtual pw_nic_status get(RemoteMemory& remote, uint64_t offset, void* data, Memory& memory, uint64_t bytes,
                            pw_nic_done* done);

  /// The same with many blocks, if the NIC supports it (has_strided()).
  [[nodiscard]] virtual bool has_strided() const { return ops_.put_strided != nullptr; }
  virtual pw_nic_status put_strided(RemoteMemory& remote, uint64_t offset, const void* data, Memory& memory,
                                    const Blocks& blocks, pw_nic_done* done);

  /// Starts a put and a word after it, or neither; as one operation if the NIC supports it.
  virtual pw_nic_status put_word(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory,
                                 uint64_t bytes, const WordStore& word, pw_nic_done* done) = 0;

  /// Stores a word at the peer once all puts before it are in place there. Words of a stream are stored in
  /// order. Later puts may overtake the word.
  virtual pw_nic_status store_word(const WordStore& word) = 0;

  /// Calls `done` once all puts and words before it are in place at the peer.
  virtual pw_nic_status flush(pw_nic_done* done) = 0;

 protected:
  friend class Endpoint;
  friend class RemoteMemory;
  Stream(Endpoint& endpoint, std::shared_ptr<Connection> connection);

  /// Continues operations that waited for progress. Sets `unfinished` if there may be more to do.
  virtual unsigned advance(bool& unfinished) = 0;
  virtual void forget(const RemoteMemory&) {}  ///< drops words that wait to be stored there

  pw_nic_status start_word(const WordStore& word);
  pw_nic_status start_get_of_marker(pw_nic_done* done);
  void activate() { endpoint_.activate(*this); }
  /// Keeps operations whose `done` the NIC may still call after this stream was destroyed.
  void keep(std::shared_ptr<void> operations) { endpoint_.abandoned_.push_back(std::move(operations)); }
  static void call(pw_nic_done* done, pw_nic_status status) {
    if (done != nullptr) done->call(done, status);
  }
  /// Records a status that ends the connection, so that everything later fails with it. Returns the status.
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
  uint64_t* const landing_;  ///< where markers arrive
  pw_nic_status failed_ = PW_NIC_OK;
  bool active_ = false;  ///< whether it is in the endpoint's list
};

/// Makes the stream that the NIC's guarantees allow.
std::unique_ptr<Stream> make_stream(Endpoint& endpoint, std::shared_ptr<Connection> connection);

}  // namespace pw::nic
