// Notes: the short messages before a staged transfer. They open a pair of rings, answer that, and request a
// transfer.
#pragma once

#include <variant>

#include "base/bytes.h"
#include "base/siphash.h"
#include "transport/staged/request.h"

namespace pw::ucx {

/// Describes the sender's ring, in a question or in the answer to one.
struct RingNote {
  bool answer = false;
  int32_t rank = 0;          ///< the sender
  pw_status status = PW_OK;  ///< of an answer: the reason if there is no ring
  uint64_t address = 0;
  Bytes key;
};

/// Asks the peer to serve this transfer over the rings that were opened before.
struct RequestNote {
  int32_t rank = 0;
  uint64_t number = 0;  ///< number among the sender's requests, because notes may overtake one another
  StagedRequest request;
};

using Note = std::variant<RingNote, RequestNote>;

/// The purpose with which the secret of notes is derived from the team's secret. UCX does not tell who sent a
/// message.
inline constexpr std::string_view kNotePurpose = "peerway notes";

Bytes write(const Note& note, const Secret& secret);

/// Throws Error if the bytes are not a note of a rank below `ranks`, or if no rank of the team wrote them.
Note read_note(ByteView bytes, int ranks, const Secret& secret);

/// The same without authentication: for the two functions above and for the fuzzer.
Bytes write_body(const Note& note);
Note read_body(ByteView body, int ranks);

}  // namespace pw::ucx
