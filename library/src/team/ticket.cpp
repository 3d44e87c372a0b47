#include "team/ticket.h"

#include <algorithm>
#include <charconv>

#include "base/format.h"
#include "base/status.h"

namespace pw {
namespace {

constexpr std::string_view kFirstLine = "peerway-ticket 1";

[[noreturn]] void refuse_ticket(std::string text) { throw Error(PW_INVALID_ARGUMENT, std::move(text)); }

std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(text.size(), end + 1));
  return line;
}

}  // namespace

std::string to_string(const Address& address) {
  if (address.unix_socket) return "unix:" + address.host;
  const bool brackets = address.host.find(':') != std::string::npos;
  return format("tcp:{}{}{}:{}", brackets ? "[" : "", address.host, brackets ? "]" : "", address.port);
}

Address parse_address(std::string_view text, const std::string& origin) {
  const auto wrong = [&]() {
    refuse_ticket(format("{} is '{}'; it must be unix:@NAME, unix:/PATH (at most 107 bytes) or tcp:HOST:PORT",
                         origin, text));
  };
  if (text.find('\0') != std::string_view::npos) wrong();
  if (text.starts_with("unix:")) {
    const std::string_view name = text.substr(5);
    if (name.size() < 2 || name.size() > 107 || (name[0] != '@' && name[0] != '/')) wrong();
    return {true, std::string(name), {}};
  }
  const size_t colon = text.rfind(':');
  if (!text.starts_with("tcp:") || colon < 5) wrong();
  std::string_view host = text.substr(4, colon - 4), port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (host.empty() || error != std::errc{} || end != port.data() + port.size() || number > 65535) wrong();
  return {false, std::string(host), std::string(port)};
}

std::string format_ticket(const Ticket& ticket) {
  std::string text = format("{}\n", kFirstLine);
  if (ticket.status != PW_OK) {
    std::string problem = ticket.problem.substr(0, 1024);
    std::ranges::replace(problem, '\n', ' ');
    return text + format("problem {} {}\n", static_cast<int>(ticket.status), problem);
  }
  text += format("secret {}\n", to_hex(ticket.secret));
  for (const Address& address : ticket.addresses) {
    const std::string line = format("address {}\n", to_string(address));
    if (text.size() + line.size() < kTicketBytes) text += line;  // the first addresses are the best
  }
  return text;
}

Ticket parse_ticket(std::string_view text, const std::string& origin) {
  text = text.substr(0, text.find('\0'));
  if (take_line(text) != kFirstLine)
    refuse_ticket(
        format("{} does not begin with '{}'; it is cut off or of another version", origin, kFirstLine));
  Ticket ticket;
  bool secret = false;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const std::string_view key = line.substr(0, line.find(' '));
    const std::string_view value = line.substr(std::min(line.size(), key.size() + 1));
    if (key == "secret") {
      ticket.secret = parse_secret(value, "the secret in " + origin);
      secret = true;
    } else if (key == "address") {
      ticket.addresses.push_back(parse_address(value, "an address in " + origin));
    } else if (key == "problem") {
      int status = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), status);
      if (error != std::errc{} || status <= PW_OK || status > PW_INTERRUPTED)
        refuse_ticket("a bad problem line in " + origin);
      ticket.status = static_cast<pw_status>(status);
      ticket.problem = std::string(end, value.data() + value.size());
      if (ticket.problem.starts_with(' ')) ticket.problem.erase(0, 1);
      return ticket;
    } else {
      refuse_ticket(format("{} has the unknown line '{}'", origin, key.substr(0, 40)));
    }
  }
  if (!secret || ticket.addresses.empty())
    refuse_ticket(origin + " is cut off: it has no secret or no address");
  return ticket;
}

}  // namespace pw
