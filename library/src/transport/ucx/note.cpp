#include "transport/ucx/note.h"

#include <algorithm>

#include "base/format.h"
#include "base/status.h"

namespace pw::ucx {
namespace {

enum class Kind : uint8_t { ring = 1, request = 2 };

void put_layout(ByteWriter& writer, const Layout& layout) {
  writer.put(layout.shape.block_bytes);
  writer.put(layout.shape.dims);
  for (uint32_t d = 0; d < PW_MAX_DIMS; ++d) {
    writer.put(layout.shape.count[d]);
    writer.put(layout.to[d]);
    writer.put(layout.from[d]);
  }
}

Layout get_layout(ByteReader& reader) {
  Layout layout;
  layout.shape.block_bytes = reader.get<uint64_t>();
  layout.shape.dims = reader.get<uint32_t>();
  if (layout.shape.dims > PW_MAX_DIMS)
    throw Error(PW_INVALID_ARGUMENT, format("a note with a layout of {} dimensions", layout.shape.dims));
  for (uint32_t d = 0; d < PW_MAX_DIMS; ++d) {
    layout.shape.count[d] = reader.get<uint64_t>();
    layout.to[d] = reader.get<int64_t>();
    layout.from[d] = reader.get<int64_t>();
  }
  return layout;
}

void put_request(ByteWriter& writer, const StagedRequest& request) {
  writer.put(static_cast<uint8_t>(request.op));
  writer.put(request.slot);
  writer.put(request.generation);
  writer.put(request.offset);
  put_layout(writer, request.layout);
}

StagedRequest get_request(ByteReader& reader) {
  StagedRequest request;
  const auto op = reader.get<uint8_t>();
  if (op > static_cast<uint8_t>(Op::get))
    throw Error(PW_INVALID_ARGUMENT, format("a note that asks for operation {}", op));
  request.op = static_cast<Op>(op);
  request.slot = reader.get<uint32_t>();
  request.generation = reader.get<uint64_t>();
  request.offset = reader.get<uint64_t>();
  request.layout = get_layout(reader);
  return request;
}

}  // namespace

Bytes write(const Note& note, const Secret& secret) {
  Bytes bytes = write_body(note);
  const Digest digest = siphash(secret, bytes);
  bytes.insert(bytes.end(), digest.begin(), digest.end());
  return bytes;
}

Note read_note(ByteView bytes, int ranks, const Secret& secret) {
  ByteReader reader(bytes, "a note of the ucx/staged path");
  const ByteView body = reader.take(bytes.size() - std::min(bytes.size(), sizeof(Digest)));
  if (!equal_digests(reader.get_array<sizeof(Digest)>(), siphash(secret, body)))
    throw Error(PW_INVALID_ARGUMENT,
                format("a note of {} bytes that no rank of this team wrote", bytes.size()));
  return read_body(body, ranks);
}

Bytes write_body(const Note& note) {
  ByteWriter writer;
  if (const auto* ring = std::get_if<RingNote>(&note)) {
    writer.put(static_cast<uint8_t>(Kind::ring));
    writer.put(ring->rank);
    writer.put(static_cast<uint8_t>(ring->answer));
    writer.put(static_cast<uint8_t>(ring->status));
    writer.put(ring->address);
    writer.put(ByteView(ring->key));
    return writer.take();
  }
  const auto& request = std::get<RequestNote>(note);
  writer.put(static_cast<uint8_t>(Kind::request));
  writer.put(request.rank);
  writer.put(request.number);
  put_request(writer, request.request);
  return writer.take();
}

Note read_body(ByteView bytes, int ranks) {
  ByteReader reader(bytes, "a note of the ucx/staged path");
  const auto kind = static_cast<Kind>(reader.get<uint8_t>());
  const auto rank = reader.get<int32_t>();
  if (rank < 0 || rank >= ranks)
    throw Error(PW_INVALID_ARGUMENT, format("a note of rank {}; this team has {}", rank, ranks));
  if (kind == Kind::ring) {
    RingNote ring;
    ring.rank = rank;
    ring.answer = reader.get<uint8_t>() != 0;
    const auto status = reader.get<uint8_t>();
    ring.status = status <= PW_INTERRUPTED ? static_cast<pw_status>(status) : PW_INTERNAL;
    ring.address = reader.get<uint64_t>();
    const ByteView key = reader.rest();
    ring.key.assign(key.begin(), key.end());
    return ring;
  }
  if (kind != Kind::request)
    throw Error(PW_INVALID_ARGUMENT, format("a note of unknown kind {}", static_cast<int>(kind)));
  RequestNote request;
  request.rank = rank;
  request.number = reader.get<uint64_t>();
  request.request = get_request(reader);
  reader.end();
  return request;
}

}  // namespace pw::ucx
