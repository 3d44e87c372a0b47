#include "team/socket.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/format.h"
#include "base/interrupt.h"
#include "base/status.h"

namespace pw {
namespace {

constexpr int kFlags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
constexpr int kBacklog = 4096;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] int family() const { return storage.ss_family; }
};

SocketAddress unix_address(const std::string& name) {
  SocketAddress address;
  auto& to = reinterpret_cast<sockaddr_un&>(address.storage);
  to.sun_family = AF_UNIX;
  std::copy_n(name.begin(), std::min(name.size(), sizeof to.sun_path - 1), to.sun_path);
  // The length of an abstract name, which starts with a zero byte, marks its end; a path ends with a zero
  // byte.
  const bool abstract = name.front() == '@';
  if (abstract) to.sun_path[0] = '\0';
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + (abstract ? 0 : 1));
  return address;
}

SocketAddress tcp_address(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* resolved = nullptr;
  if (const int error = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &resolved))
    throw Error(PW_SYSTEM, format("the host '{}' of {} was not found: {}", address.host, to_string(address),
                                  ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(resolved, ::freeaddrinfo);
  SocketAddress result;
  std::copy_n(reinterpret_cast<const char*>(resolved->ai_addr), resolved->ai_addrlen,
              reinterpret_cast<char*>(&result.storage));
  result.length = resolved->ai_addrlen;
  return result;
}

SocketAddress resolve(const Address& address, int flags) {
  return address.unix_socket ? unix_address(address.host) : tcp_address(address, flags);
}

Descriptor open_socket(int family) {
  Descriptor socket(::socket(family, kFlags, 0));
  if (!socket) throw Error(PW_SYSTEM, "no socket can be opened" + errno_text(errno));
  return socket;
}

/// Makes TCP notice a vanished host within about five seconds, and send small messages at once.
void tune_tcp(int socket) {
  const auto set = [&](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 5000);
}

uint16_t port_of(const Descriptor& socket) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &length);
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                                          : reinterpret_cast<sockaddr_in&>(name).sin_port);
}

std::array<std::byte, 16> host_of(const sockaddr_storage& from) {
  std::array<std::byte, 16> host{};
  if (from.ss_family == AF_INET) {
    std::memcpy(host.data(), &reinterpret_cast<const sockaddr_in&>(from).sin_addr, sizeof(in_addr));
  } else if (from.ss_family == AF_INET6) {
    const in6_addr& address = reinterpret_cast<const sockaddr_in6&>(from).sin6_addr;
    // Uses the network of an IPv6 address: whoever has one address of a network has all of them.
    std::memcpy(host.data(), &address, IN6_IS_ADDR_V4MAPPED(&address) ? sizeof address : sizeof address / 2);
  }
  return host;
}

/// Connects with a blocking socket. A full queue refuses a nonblocking connect, but lets a blocking one in
/// when its turn comes, however many others try.
int connect_in_turn(const Descriptor& socket, const SocketAddress& to, uint64_t deadline) {
  const int flags = ::fcntl(socket.get(), F_GETFL);
  ::fcntl(socket.get(), F_SETFL, flags & ~O_NONBLOCK);
  int error = 0;
  do {
    const int remaining_ms = std::max(poll_milliseconds(deadline), 1);
    const timeval limit{remaining_ms / 1000, remaining_ms % 1000 * 1000};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    error = ::connect(socket.get(), to.get(), to.length) == 0 ? 0 : errno;
  } while ((error == EAGAIN || error == EINTR) && now_ns() < deadline);
  ::fcntl(socket.get(), F_SETFL, flags);
  return error == EINTR ? EAGAIN : error;
}

/// Returns the addresses of all interfaces that are up: IPv4 first, the loopback only if there are no others.
std::vector<Address> interface_addresses(const std::string& port, bool ipv6) {
  ifaddrs* first = nullptr;
  std::vector<Address> ipv4s, ipv6s;
  if (::getifaddrs(&first) == 0) {
    for (const ifaddrs* each = first; each; each = each->ifa_next) {
      if (!each->ifa_addr || !(each->ifa_flags & IFF_UP) || (each->ifa_flags & IFF_LOOPBACK)) continue;
      const int family = each->ifa_addr->sa_family;
      if (family != AF_INET && family != AF_INET6) continue;
      char host[NI_MAXHOST];
      const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      if (::getnameinfo(each->ifa_addr, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) continue;
      if (std::string_view(host).find('%') != std::string_view::npos)
        continue;  // link-local addresses are useless to other hosts
      (family == AF_INET ? ipv4s : ipv6s).push_back({false, host, port});
    }
    ::freeifaddrs(first);
  }
  if (ipv6) ipv4s.insert(ipv4s.end(), ipv6s.begin(), ipv6s.end());
  if (ipv4s.empty()) ipv4s.push_back({false, "127.0.0.1", port});
  return ipv4s;
}

/// Binds the socket. `peerway run` may hold rank 0's port for it, by a socket that shares the port with other
/// sockets of this user and never listens (launch/rendezvous.py). Nothing else is shared: two jobs that were
/// given one port must not both listen there.
bool bind_to(const Descriptor& socket, const SocketAddress& at) {
  if (::bind(socket.get(), at.get(), at.length) == 0) return true;
  if (errno != EADDRINUSE || at.family() == AF_UNIX) return false;
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  return ::bind(socket.get(), at.get(), at.length) == 0;
}

}  // namespace

Descriptor listen_on(const Address& address) {
  const SocketAddress at = resolve(address, AI_PASSIVE);
  Descriptor socket = open_socket(at.family());
  const int on = 1;
  if (!address.unix_socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!bind_to(socket, at) || ::listen(socket.get(), kBacklog) != 0) {
    const int error = errno;
    throw Error(PW_SYSTEM,
                format("rank 0 cannot listen at {}{}{}", to_string(address), errno_text(error),
                       error == EADDRINUSE ? ". Another process uses it: choose another address, or let "
                                             "`peerway run` choose"
                                           : ""));
  }
  return socket;
}

Descriptor listen_on_any_port(std::vector<Address>& reachable) {
  int family = AF_INET6;  // accepts IPv4, too
  Descriptor socket(::socket(AF_INET6, kFlags, 0));
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_addr = in6addr_any;
  const int off = 0;
  if (!socket || ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0 ||
      ::bind(socket.get(), reinterpret_cast<sockaddr*>(&any6), sizeof any6) != 0) {
    family = AF_INET;
    socket = open_socket(AF_INET);
    sockaddr_in any4{};
    any4.sin_family = AF_INET;
    if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&any4), sizeof any4) != 0)
      throw Error(PW_SYSTEM, "no TCP port is free" + errno_text(errno));
  }
  if (::listen(socket.get(), kBacklog) != 0)
    throw Error(PW_SYSTEM, "this rank cannot listen on TCP" + errno_text(errno));
  reachable = interface_addresses(std::to_string(port_of(socket)), family == AF_INET6);
  return socket;
}

Descriptor accept_from(const Descriptor& listener, Origin& source) {
  sockaddr_storage from{};
  socklen_t length = sizeof from;
  Descriptor socket(
      ::accept4(listener.get(), reinterpret_cast<sockaddr*>(&from), &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) return socket;
  source = {host_of(from), from.ss_family == AF_UNIX ? peer_user(socket.get()) : std::nullopt};
  return socket;
}

void trust(int socket) {
  int domain = 0;
  socklen_t length = sizeof domain;
  if (::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain != AF_UNIX)
    tune_tcp(socket);
}

Descriptor connect_to(const Address& address, uint64_t deadline) {
  const SocketAddress to = resolve(address, 0);
  Descriptor socket = open_socket(to.family());
  if (!address.unix_socket) tune_tcp(socket.get());
  int error = 0;
  if (address.unix_socket)
    error = connect_in_turn(socket, to, deadline);
  else if (::connect(socket.get(), to.get(), to.length) != 0)
    error = errno;
  if (error == EAGAIN) throw Error(PW_TIMEOUT, format("too many connections wait at {}", to_string(address)));
  if (error == EINPROGRESS) {
    pollfd ready{socket.get(), POLLOUT, 0};
    while (::poll(&ready, 1, sliced_milliseconds(deadline)) <= 0)
      if (Interrupt::ask())
        throw Error(PW_INTERRUPTED, "joining the team was interrupted by this program");
      else if (now_ns() >= deadline)
        throw Error(PW_TIMEOUT, format("nothing answers at {}", to_string(address)));
    socklen_t length = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error != 0)
    throw Error(PW_SYSTEM, format("cannot connect to {}{}", to_string(address), errno_text(error)));
  return socket;
}

Descriptor begin_connect(const Address& address, bool& connected) {
  const SocketAddress to = resolve(address, AI_NUMERICHOST);
  Descriptor socket = open_socket(to.family());
  if (!address.unix_socket) tune_tcp(socket.get());
  connected = ::connect(socket.get(), to.get(), to.length) == 0;
  if (const int error = connected ? 0 : errno; error == EAGAIN)
    throw Error(PW_TIMEOUT, format("too many connections wait at {}", to_string(address)));
  else if (error != 0 && error != EINPROGRESS)
    throw Error(PW_SYSTEM, format("cannot connect to {}{}", to_string(address), errno_text(error)));
  return socket;
}

void check_connected(int socket, const Address& address) {
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0)
    throw Error(PW_SYSTEM, format("cannot connect to {}{}", to_string(address), errno_text(error)));
}

std::optional<uid_t> peer_user(int socket) {
  int domain = 0;
  socklen_t length = sizeof domain;
  if (::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0 || domain != AF_UNIX)
    return std::nullopt;
  ucred credentials{};
  length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return static_cast<uid_t>(-1);  // no user has this id, so every caller refuses it
  return credentials.uid;
}

std::pair<Descriptor, Descriptor> socket_pair() {
  int both[2];
  if (::socketpair(AF_UNIX, kFlags, 0, both) != 0)
    throw Error(PW_SYSTEM, "no socket pair can be opened" + errno_text(errno));
  return {Descriptor(both[0]), Descriptor(both[1])};
}

}  // namespace pw
