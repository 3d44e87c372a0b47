// The ticket and the addresses in it.
#include <gtest/gtest.h>

#include "base/status.h"
#include "team/ticket.h"

namespace pw {
namespace {

TEST(Ticket, RoundTrip) {
  Ticket ticket;
  ticket.secret[15] = std::byte{0xab};
  ticket.addresses = {parse_address("unix:@x", "a"), parse_address("tcp:[2001:db8::1]:80", "a"),
                      parse_address("tcp:node01:65535", "a")};
  const std::string text = format_ticket(ticket);
  const Ticket back = parse_ticket(text + std::string(10, '\0'), "t");
  EXPECT_EQ(back.secret, ticket.secret);
  ASSERT_EQ(back.addresses.size(), 3u);
  EXPECT_EQ(back.addresses[1].host, "2001:db8::1");
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(to_string(back.addresses[i]), to_string(ticket.addresses[i]));
  for (size_t length = 0; length < text.rfind("address"); ++length)
    if (text.substr(0, length).find("unix:@") == std::string::npos) {
      EXPECT_THROW(parse_ticket(text.substr(0, length), "t"), Error) << length;
    }
}

TEST(Ticket, AProblemOfRankZeroTravels) {
  Ticket ticket;
  ticket.status = PW_SYSTEM;
  ticket.problem = "no\nport";
  const Ticket back = parse_ticket(format_ticket(ticket), "t");
  EXPECT_EQ(back.status, PW_SYSTEM);
  EXPECT_EQ(back.problem, "no port");
}

TEST(Ticket, BadAddressesAreRefusedWithTheText) {
  for (const char* bad : {"", "unix:", "unix:@", "unix:relative", "tcp:", "tcp:host", "tcp::80",
                          "tcp:h:65536", "tcp:h:8x", "tcp:h:", "http://h:80", "tcp:h:-1"}) {
    try {
      parse_address(bad, "PEERWAY_RENDEZVOUS");
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), PW_INVALID_ARGUMENT);
      EXPECT_NE(std::string(error.what()).find(std::string("PEERWAY_RENDEZVOUS is '") + bad),
                std::string::npos);
    }
  }
  EXPECT_THROW(parse_address("unix:@" + std::string(107, 'x'), "a"), Error);
}

}  // namespace
}  // namespace pw
