/* Reports what an MPI program moved, and by what it could have moved it, as one line of JSON for each
 * rank: the bytes of its messages, puts and gets to and from each peer, the bytes that its TCP sockets
 * carried meanwhile, and the memory that it shares with other processes. */
#ifndef MPI_REPORT_H
#define MPI_REPORT_H

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { kMostRanks = 64 };
typedef struct Moved {
  long to[kMostRanks];   /* bytes that left this rank */
  long from[kMostRanks]; /* bytes that this rank fetched */
} Moved;
static Moved messages_moved, puts_moved, gets_moved;
static long tcp_bytes_before; /* bytes of the launcher's connections, up to MPI_Init */

static void moved_to(Moved* kind, int peer, size_t bytes) { kind->to[peer] += (long)bytes; }
static void moved_from(Moved* kind, int peer, size_t bytes) { kind->from[peer] += (long)bytes; }

static long tcp_bytes(void) {
  long sum = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) continue;
    sum += (long)(info.tcpi_bytes_acked + info.tcpi_bytes_received);
  }
  return sum;
}

static void start_report(void) { tcp_bytes_before = tcp_bytes(); }

/* Writes the names of mappings that are shared and writable. */
static void write_shared(FILE* out) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[1024], rights[8], name[900];
  const char* comma = "";
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%*s %7s %*s %*s %*s %899s", rights, name) != 2) continue;
    if (rights[1] != 'w' || rights[3] != 's') continue;
    fprintf(out, "%s\"%s\"", comma, name);
    comma = ",";
  }
  if (maps != NULL) fclose(maps);
}

static void write_counts(FILE* out, const char* name, const long* counts, int ranks) {
  fprintf(out, "\"%s\":[", name);
  for (int i = 0; i < ranks; ++i) fprintf(out, "%s%ld", i > 0 ? "," : "", counts[i]);
  fprintf(out, "],");
}

/* Appends the line to `path` in one write, so that lines of several ranks do not mix. */
static int write_report(const char* path, int rank, int ranks) {
  static char buffer[1 << 18];
  FILE* out = fopen(path, "a");
  if (out == NULL) return 0;
  setvbuf(out, buffer, _IOFBF, sizeof buffer);
  fprintf(out, "{\"rank\":%d,", rank);
  write_counts(out, "messages_to", messages_moved.to, ranks);
  write_counts(out, "puts_to", puts_moved.to, ranks);
  write_counts(out, "gets_from", gets_moved.from, ranks);
  fprintf(out, "\"tcp_bytes\":%ld,\"shared\":[", tcp_bytes() - tcp_bytes_before);
  write_shared(out);
  fprintf(out, "]}\n");
  return fclose(out) == 0;
}

#endif
