// Fuzzes notes of ucx/staged, as a rank of the team may send them: a note is refused, or read as it was
// written. A request that passes the check of its span touches no byte outside of the span.

#include "base/status.h"
#include "fuzz/fuzz.h"
#include "transport/ucx/note.h"

namespace pw::fuzz {

namespace {

constexpr int kRanks = 4;
constexpr uint64_t kSpan = 1 << 20;
constexpr uint64_t kChunk = 4096;
constexpr int kMostChunks = 4096;  // shapes of a few bytes in many blocks would keep the fuzzer busy

void walk(const StagedRequest& request) {
  const Layout& layout = request.layout;
  const bool put = request.op == Op::put;
  const Strides& strides = put ? layout.to : layout.from;
  if (!lies_inside(layout.shape, strides, request.offset, kSpan)) return;
  ChunkCursor cursor(layout, kChunk);
  int chunks = 0;
  for (Chunk chunk; chunks < kMostChunks && cursor.next(chunk); ++chunks) {
    const Shape& shape = chunk.layout.shape;
    const Strides& part = put ? chunk.layout.to : chunk.layout.from;
    const uint64_t first = request.offset + (put ? chunk.to_offset : chunk.from_offset);
    require(end_of(shape, part, first) <= kSpan && shape.bytes() <= kChunk);
  }
}

}  // namespace

FUZZ(fuzz_note) {
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    const ucx::Note note = ucx::read_body(bytes, kRanks);
    const Bytes written = ucx::write_body(note);
    require(ucx::write_body(ucx::read_body(written, kRanks)) == written);
    if (const auto* request = std::get_if<ucx::RequestNote>(&note)) walk(request->request);
  } catch (const Error& error) {
    require(error.status() == PW_INVALID_ARGUMENT);
  }
}

}  // namespace pw::fuzz
