// The notes of ucx/staged: what is written is read, everything else is refused.
#include <gtest/gtest.h>

#include "base/status.h"
#include "path/ucx/note.h"

namespace pw::ucx {
namespace {

RequestNote request() {
  RequestNote note;
  note.rank = 3;
  note.number = uint64_t{1} << 40;
  note.request.op = Op::get;
  note.request.slot = 17;
  note.request.generation = 5;
  note.request.offset = 4096;
  note.request.layout.shape.block_bytes = 8;
  note.request.layout.shape.dims = 2;
  note.request.layout.shape.count = {3, 5, 0, 0};
  note.request.layout.to = {64, 8, 0, 0};
  note.request.layout.from = {uint64_t{1} << 33, 16, 0, 0};
  return note;
}

TEST(Note, ARequestIsReadAsItWasWritten) {
  const RequestNote sent = request();
  const auto got = std::get<RequestNote>(read_note(write(sent), 4));
  EXPECT_EQ(got.rank, sent.rank);
  EXPECT_EQ(got.number, sent.number);
  EXPECT_EQ(got.request.op, sent.request.op);
  EXPECT_EQ(got.request.slot, sent.request.slot);
  EXPECT_EQ(got.request.generation, sent.request.generation);
  EXPECT_EQ(got.request.offset, sent.request.offset);
  EXPECT_EQ(got.request.layout.shape.block_bytes, sent.request.layout.shape.block_bytes);
  EXPECT_EQ(got.request.layout.shape.dims, sent.request.layout.shape.dims);
  EXPECT_EQ(got.request.layout.shape.count, sent.request.layout.shape.count);
  EXPECT_EQ(got.request.layout.to, sent.request.layout.to);
  EXPECT_EQ(got.request.layout.from, sent.request.layout.from);
}

TEST(Note, ARingIsReadAsItWasWritten) {
  RingNote sent;
  sent.answer = true;
  sent.rank = 1;
  sent.status = PW_NO_MEMORY;
  sent.address = 0x7f0000001000;
  sent.key = Bytes(195, std::byte{0x5a});
  const auto got = std::get<RingNote>(read_note(write(sent), 2));
  EXPECT_TRUE(got.answer);
  EXPECT_EQ(got.rank, 1);
  EXPECT_EQ(got.status, PW_NO_MEMORY);
  EXPECT_EQ(got.address, sent.address);
  EXPECT_EQ(got.key, sent.key);
}

TEST(Note, ATruncatedOrForeignNoteIsRefused) {
  const Bytes whole = write(request());
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(read_note(ByteView(whole).first(length), 4), Error) << length;
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_THROW(read_note(longer, 4), Error);
  EXPECT_THROW(read_note(whole, 3), Error) << "rank 3 of 3";
  Bytes unknown = whole;
  unknown[0] = std::byte{9};
  EXPECT_THROW(read_note(unknown, 4), Error);
}

TEST(Note, ALayoutOfTooManyDimensionsIsRefused) {
  RequestNote note = request();
  note.request.layout.shape.dims = PW_MAX_DIMS + 1;
  EXPECT_THROW(read_note(write(note), 4), Error);
}

TEST(Note, AnUnknownOperationIsRefused) {
  Bytes note = write(request());
  note[1 + 4 + 8] = std::byte{2};  // after the kind, the rank and the number
  EXPECT_THROW(read_note(note, 4), Error);
}

}  // namespace
}  // namespace pw::ucx
