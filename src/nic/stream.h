// Operations of one endpoint towards one peer, with what a card of put and get does not have: words that are
// stored after everything before them, and a flush that tells of arrival. Both are built from the promises of
// the plugin (peerway/nic.h) and nothing more:
//
//   puts in order | gets behind puts | a word                          | a flush
//   yes           | yes              | put                             | get of a marker
//   no            | yes              | put once a marker's get is back | get of a marker
//   yes           | no               | put                             | put of a marker, got until it is there
//   no            | no               | nothing proves that a put arrived, so the peer is asked to get the bytes
//                                      and to store the word, and answers
#pragma once

#include <cstdint>
#include <memory>

#include "nic/endpoint.h"

namespace pw::nic {

class Stream {
 public:
  virtual ~Stream() = default;

  /// A key of this peer, made usable. Throws Error with what the card says.
  std::unique_ptr<RemoteMemory> import(const pw_nic_key& key);

  /// As the entry of the plugin: `memory` null copies the bytes. PW_NIC_BUSY: progress() and try again.
  virtual pw_nic_status put(RemoteMemory& remote, uint64_t offset, const void* data, Memory* memory,
                            uint64_t bytes, pw_nic_done* done) = 0;
  virtual pw_nic_status get(RemoteMemory& remote, uint64_t offset, void* data, Memory& memory, uint64_t bytes,
                            pw_nic_done* done) = 0;

  /// Stores a word at the peer once all puts before it are in place there; words of a stream are stored in
  /// order. Puts that follow may come before it.
  virtual pw_nic_status word(RemoteMemory& remote, uint64_t offset, uint64_t value) = 0;

  /// `done` once all puts and words before it are in place at the peer.
  virtual pw_nic_status flush(pw_nic_done* done) = 0;
};

}  // namespace pw::nic
