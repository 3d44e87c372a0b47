// The short messages that precede a staged transfer: open a pair of rings, answer that, request a transfer.
#pragma once

#include <variant>

#include "base/bytes.h"
#include "base/siphash.h"
#include "transport/staged/request.h"

namespace pw::ucx {

/// The sender's ring; as a question or as the answer to one.
struct RingNote {
  bool answer = false;
  int32_t rank = 0;          ///< the sender
  pw_status status = PW_OK;  ///< of an answer: why there is no ring
  uint64_t address = 0;
  Bytes key;
};

/// Serve this transfer over the rings that were opened before.
struct RequestNote {
  int32_t rank = 0;
  uint64_t number = 0;  ///< of the sender's requests: notes may overtake one another
  StagedRequest request;
};

using Note = std::variant<RingNote, RequestNote>;

/// The purpose for which the secret of notes is derived from the team's. UCX does not say who sent a message.
inline constexpr std::string_view kNotePurpose = "peerway notes";

Bytes write(const Note& note, const Secret& secret);

/// Throws Error for anything that is not a note of a rank below `ranks` that a rank of the team wrote.
Note read_note(ByteView bytes, int ranks, const Secret& secret);

/// The same of what the secret authenticates: for the two above and for the fuzzer.
Bytes write_body(const Note& note);
Note read_body(ByteView body, int ranks);

}  // namespace pw::ucx
