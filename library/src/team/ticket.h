// The ticket: what the other ranks must know to join rank 0's team, as NCCL's unique id. It contains the
// addresses of the bootstrap server and the job's secret, as text of at most kTicketBytes. The parser reads
// what another process wrote, so it is fuzzed (library/tests/fuzz).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/secret.h"
#include "peerway/peerway.h"

namespace pw {

inline constexpr size_t kTicketBytes = 4096;

/// Where a bootstrap server listens: a Unix socket ("unix:@name" in the abstract namespace, "unix:/path") or
/// TCP ("tcp:192.0.2.1:4711", "tcp:[2001:db8::1]:4711").
struct Address {
  bool unix_socket = true;
  std::string host;  ///< the socket's name, including '@', or the host
  std::string port;
};

struct Ticket {
  Secret secret{};
  std::vector<Address> addresses;  ///< in the order in which to try them
  pw_status status = PW_OK;        ///< if not PW_OK, `problem` says why rank 0 opened no server
  std::string problem;
};

std::string to_string(const Address& address);
/// Throws Error(PW_INVALID_ARGUMENT) with what is allowed; `origin` names where the text came from.
Address parse_address(std::string_view text, const std::string& origin);

std::string format_ticket(const Ticket& ticket);
/// Trailing zero bytes are ignored. Throws Error(PW_INVALID_ARGUMENT).
Ticket parse_ticket(std::string_view text, const std::string& origin);

}  // namespace pw
