// The messages of the rendezvous: what is packed is read back; what is cut, lengthened or foreign is refused.
#include <gtest/gtest.h>

#include "team/message.h"

namespace pw::wire {
namespace {

template <typename Parse>
void refuses_every_cut(const Bytes& whole, Parse parse) {
  EXPECT_NO_THROW(parse(ByteView(whole)));
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(parse(ByteView(whole).first(length)), Error) << length;
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_THROW(parse(ByteView(longer)), Error);
}

TEST(Message, HeaderRoundTripAndRefusals) {
  const HeaderBytes good = pack_header(Type::contribute, 77);
  const Header header = parse_header(good, 100);
  EXPECT_EQ(header.type, Type::contribute);
  EXPECT_EQ(header.bytes, 77u);
  EXPECT_THROW(parse_header(good, 76), Error);
  for (size_t i = 4; i < good.size(); ++i) {  // magic, version, type
    HeaderBytes bad = good;
    bad[i] ^= std::byte{0x80};
    EXPECT_THROW(parse_header(bad, 100), Error) << i;
  }
  HeaderBytes zero_type = good;
  zero_type[7] = std::byte{0};
  EXPECT_THROW(parse_header(zero_type, 100), Error);
}

TEST(Message, HelloIsCheckedForItsRange) {
  const Hello hello{2, 3, {}};
  refuses_every_cut(pack(hello), [](ByteView bytes) { parse_hello(bytes); });
  EXPECT_THROW(parse_hello(pack(Hello{3, 3, {}})), Error);
  EXPECT_THROW(parse_hello(pack(Hello{0, 0, {}})), Error);
  EXPECT_THROW(parse_hello(pack(Hello{0, kMaxRanks + 1, {}})), Error);
}

TEST(Message, RosterRefusalFailureAndLoss) {
  const std::vector<Identity> roster{{1, 7, 3, "a", "unix:@x"},
                                     {2, 8, 4, "node02", "unix:@y tcp:192.0.2.1:7"}};
  refuses_every_cut(pack(roster), [](ByteView bytes) { parse_welcome(bytes, 2); });
  EXPECT_EQ(parse_welcome(pack(roster), 2)[1].host_name, "node02");
  EXPECT_EQ(parse_welcome_of(pack(roster), 1).addresses, "unix:@y tcp:192.0.2.1:7");
  EXPECT_THROW(parse_welcome(pack(roster), 3), Error);
  EXPECT_THROW(parse_join(pack(Identity{-4, 0, 0, "", ""})), Error);
  refuses_every_cut(pack(Refusal{PW_DENIED, "no"}), [](ByteView bytes) { parse_refuse(bytes); });
  EXPECT_THROW(parse_refuse(pack(Refusal{PW_OK, "yes"})), Error);
  refuses_every_cut(pack(Failure{9, {PW_PEER_LOST, "rank 1"}}), [](ByteView bytes) { parse_failure(bytes); });
  refuses_every_cut(pack(Loss{1, How::departed}), [](ByteView bytes) { parse_loss(bytes, 2); });
  refuses_every_cut(pack_fence(9), [](ByteView bytes) { parse_fence(bytes); });
  EXPECT_EQ(parse_fence(pack_fence(uint64_t{9} << 40)), uint64_t{9} << 40);
  EXPECT_THROW(parse_loss(pack(Loss{2, How::departed}), 2), Error);
  EXPECT_THROW(parse_loss(pack(Loss{1, static_cast<How>(4)}), 2), Error);
  EXPECT_THROW(parse_loss(pack(Loss{1, How::none}), 2), Error);
}

TEST(Message, APartSaysWhichCallItBelongsTo) {
  const Bytes part = pack(ExchangePart{7, CallKind::plan_among, 3, view_of("x")});
  EXPECT_EQ(parse_exchange_part(part).number, 7u);
  EXPECT_EQ(parse_exchange_part(part).kind, CallKind::plan_among);
  EXPECT_EQ(parse_exchange_part(part).place, 3u);
  EXPECT_EQ(parse_exchange_part(part).data.size(), 1u);
  for (size_t length = 0; length < 17; ++length)
    EXPECT_THROW(parse_exchange_part(ByteView(part).first(length)), Error) << length;
  EXPECT_THROW(parse_exchange_part(pack(ExchangePart{7, CallKind::barrier, 3, {}})), Error);
  EXPECT_NO_THROW(parse_contribution(pack(Contribution{7, CallKind::plan, {}})));
  EXPECT_THROW(parse_contribution(pack(Contribution{7, CallKind::plan_among, {}})), Error);
  EXPECT_THROW(parse_contribution(pack(Contribution{7, static_cast<CallKind>(0), {}})), Error);
}

TEST(Message, ALongTextIsCutNotRefusedByTheOtherSide) {
  EXPECT_EQ(parse_refuse(pack(Refusal{PW_SYSTEM, std::string(10000, 'x')})).text.size(), 4096u);
}

TEST(Message, SealsDependOnEveryPart) {
  const Secret secret{std::byte{1}};
  const Hello hello{1, 2, {}};
  const Nonce nonce{std::byte{5}};
  const Secret key = session_key(secret, "server", hello, nonce);
  EXPECT_NE(key, session_key(secret, "client", hello, nonce));
  EXPECT_NE(key, session_key(Secret{}, "server", hello, nonce));
  EXPECT_NE(key, session_key(secret, "server", hello, Nonce{}));
  EXPECT_NE(key, session_key(secret, "server", Hello{0, 2, {}}, nonce));
  const Bytes payload(3, std::byte{9});
  const auto header = pack_header(Type::lost, 3);
  const Digest sealed = seal(key, 4, header, payload);
  EXPECT_NE(sealed, seal(key, 5, header, payload));
  EXPECT_NE(sealed, seal(key, 4, pack_header(Type::join, 3), payload));
  EXPECT_NE(sealed, seal(key, 4, header, Bytes(3)));
  EXPECT_NE(sealed, seal(secret, 4, header, payload));
}

}  // namespace
}  // namespace pw::wire
