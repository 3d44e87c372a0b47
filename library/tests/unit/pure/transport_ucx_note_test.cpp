// The notes of ucx/staged: what is written is read, everything else is refused.
#include <gtest/gtest.h>

#include "base/status.h"
#include "transport/ucx/note.h"

namespace pw::ucx {
namespace {

const Secret kSecret{std::byte{5}};

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
  const auto got = std::get<RequestNote>(read_note(write(sent, kSecret), 4, kSecret));
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
  const auto got = std::get<RingNote>(read_note(write(sent, kSecret), 2, kSecret));
  EXPECT_TRUE(got.answer);
  EXPECT_EQ(got.rank, 1);
  EXPECT_EQ(got.status, PW_NO_MEMORY);
  EXPECT_EQ(got.address, sent.address);
  EXPECT_EQ(got.key, sent.key);
}

TEST(Note, ATruncatedOrForeignNoteIsRefused) {
  const Bytes whole = write(request(), kSecret);
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(read_note(ByteView(whole).first(length), 4, kSecret), Error) << length;
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_THROW(read_note(longer, 4, kSecret), Error);
  EXPECT_THROW(read_note(whole, 3, kSecret), Error) << "rank 3 of 3";
  Bytes unknown = write_body(request());
  unknown[0] = std::byte{9};
  EXPECT_THROW(read_body(unknown, 4), Error);
}

TEST(Note, WhatNobodyOfTheTeamWroteIsRefused) {
  const Bytes whole = write(request(), kSecret);
  EXPECT_THROW(read_note(whole, 4, Secret{std::byte{6}}), Error);
  for (size_t i = 0; i < whole.size(); ++i) {
    Bytes forged = whole;
    forged[i] ^= std::byte{1};
    EXPECT_THROW(read_note(forged, 4, kSecret), Error) << "byte " << i;
  }
}

TEST(Note, ALayoutOfTooManyDimensionsIsRefused) {
  RequestNote note = request();
  note.request.layout.shape.dims = PW_MAX_DIMS + 1;
  EXPECT_THROW(read_note(write(note, kSecret), 4, kSecret), Error);
}

TEST(Note, AnUnknownOperationIsRefused) {
  Bytes note = write_body(request());
  note[1 + 4 + 8] = std::byte{2};  // after the kind, the rank and the number
  EXPECT_THROW(read_body(note, 4), Error);
}

}  // namespace
}  // namespace pw::ucx
