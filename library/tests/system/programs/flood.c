/* A stranger at the rendezvous of a job: connects as often as it can, for at most SECONDS and COUNT
 * connections, and ends with its parent. It attacks 127.0.0.1 and Unix sockets only. flood KIND ADDRESS
 * SECONDS COUNT [HELLO] KIND: silence    connects and says nothing; holds as many connections as it may
 *       garbage    writes what is no message
 *       hello      writes HELLO (hexadecimal), of which the last 16 bytes are made anew each time
 *       replay     writes HELLO as it is
 *       reconnect  hangs up at once
 * ADDRESS: tcp:127.0.0.1:PORT, or unix:@NAME for whatever Unix socket has a name that begins so (as
 * /proc/net/unix tells everybody). Prints how many connections it made. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { held_at_once = 500, longest_hello = 512 };

static union {
  struct sockaddr any;
  struct sockaddr_in tcp;
  struct sockaddr_un local;
} target;
static socklen_t target_length;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void aim_at_tcp(const char* port) {
  target.tcp.sin_family = AF_INET;
  target.tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  target.tcp.sin_port = htons((unsigned short)atoi(port));
  target_length = sizeof target.tcp;
}

/* The teams of a job follow one another, each at a socket of its own. */
static void aim_at_local(const char* prefix) {
  FILE* table = fopen("/proc/net/unix", "r");
  char line[512];
  while (table && fgets(line, sizeof line, table)) {
    char* name = strchr(line, '@');
    if (!name || strncmp(name, prefix, strlen(prefix)) != 0) continue;
    name[strcspn(name, "\n")] = '\0';
    target.local.sun_family = AF_UNIX;
    memcpy(target.local.sun_path, name, strlen(name));
    target.local.sun_path[0] = '\0';
    target_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
  }
  if (table) fclose(table);
}

static size_t from_hex(const char* hex, unsigned char* bytes) {
  size_t count = 0;
  for (unsigned value; count < longest_hello && sscanf(hex + 2 * count, "%2x", &value) == 1; ++count)
    bytes[count] = (unsigned char)value;
  return count;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  prctl(PR_SET_PDEATHSIG, 9);
  const char *kind = argv[1], *address = argv[2];
  const double until = now() + atof(argv[3]);
  const long most = atol(argv[4]);
  unsigned char hello[longest_hello] = "GET / HTTP/1.1\r\nHost: peerway\r\nContent-Length: 100000\r\n\r\n";
  size_t bytes = strcmp(kind, "garbage") == 0 ? strlen((char*)hello) : 0;
  if (argc > 5) bytes = from_hex(argv[5], hello);
  const int local = strncmp(address, "unix:", 5) == 0;
  if (!local) aim_at_tcp(strrchr(address, ':') + 1);

  int held[held_at_once];
  for (int i = 0; i < held_at_once; ++i) held[i] = -1;
  long opened = 0;
  while (now() < until && opened < most) {
    if (local && target_length == 0) aim_at_local(address + 5);
    const int connection = socket(local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct linger at_once = {1,
                                   0}; /* no ports in TIME_WAIT: they would keep this host's own ranks out */
    setsockopt(connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    fcntl(connection, F_SETFL, O_NONBLOCK);
    const int reached =
        target_length && (connect(connection, &target.any, target_length) == 0 || errno == EINPROGRESS);
    if (!reached) {
      if (local && errno != EAGAIN) target_length = 0; /* that team has met: wait for the next */
      close(connection);
      if (errno != EAGAIN) usleep(200);
      continue;
    }
    ++opened;
    if (strcmp(kind, "hello") == 0) getrandom(hello + bytes - 16, 16, 0);
    if (bytes) (void)!send(connection, hello, bytes, MSG_NOSIGNAL);
    int* slot = &held[opened % held_at_once];
    if (*slot >= 0) close(*slot);
    *slot = connection;
    if (strcmp(kind, "reconnect") == 0) {
      close(connection);
      *slot = -1;
    }
  }
  printf("%ld\n", opened);
  return 0;
}
