/* The ranks of a program that no MPI started: who they are, and the exchange of a few bytes over the sockets
 * that the harness opened between rank 0 and each other rank. A rank that finds its socket closed ends. */
#ifndef PEERS_OOB_H
#define PEERS_OOB_H

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include "measure.h"

enum { OOB_MOST_RANKS = 64 };

typedef struct oob {
  int rank, ranks;
  int link[OOB_MOST_RANKS]; /* rank 0: to rank i; others: link[0] to rank 0 */
} oob;

static inline void oob_send(int socket, const void* bytes, size_t n) {
  for (size_t done = 0; done < n;) {
    ssize_t now = write(socket, (const char*)bytes + done, n - done);
    if (now <= 0) die("another rank ended: its socket is closed");
    done += (size_t)now;
  }
}

static inline void oob_receive(int socket, void* bytes, size_t n) {
  for (size_t done = 0; done < n;) {
    ssize_t now = read(socket, (char*)bytes + done, n - done);
    if (now <= 0) die("another rank ended: its socket is closed");
    done += (size_t)now;
  }
}

/* Reads --rank, --ranks, --links (sockets, in rank order) and --cpu (the CPU to bind to; without it
 * the rank is not bound). */
static inline oob oob_open(int argc, char** argv) {
  oob o;
  memset(&o, 0, sizeof o);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  o.rank = atoi(option(argc, argv, "--rank", "0"));
  o.ranks = atoi(option(argc, argv, "--ranks", "0"));
  if (o.ranks < 2 || o.ranks > OOB_MOST_RANKS)
    die("%d ranks; 2 to %d are possible", o.ranks, (int)OOB_MOST_RANKS);
  const char* links = option(argc, argv, "--links", "");
  int wanted = o.rank ? 1 : o.ranks - 1;
  for (int i = 0; i < wanted; ++i) {
    char* end;
    o.link[o.rank ? 0 : i + 1] = (int)strtol(links, &end, 10);
    if (end == links) die("rank %d needs %d sockets in --links", o.rank, wanted);
    links = *end == ',' ? end + 1 : end;
  }
  const char* cpu = option(argc, argv, "--cpu", "");
  if (*cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(cpu), &set);
    if (sched_setaffinity(0, sizeof set, &set)) die("CPU %s cannot be used: %s", cpu, strerror(errno));
  }
  return o;
}

/* Every rank gives `bytes` and gets those of all ranks, in rank order. Also a barrier. */
static inline void oob_all_gather(const oob* o, const void* mine, size_t bytes, void* all) {
  char* to = (char*)all;
  memmove(to + (size_t)o->rank * bytes, mine, bytes);
  if (o->rank) {
    oob_send(o->link[0], mine, bytes);
    oob_receive(o->link[0], to, bytes * (size_t)o->ranks);
    return;
  }
  for (int r = 1; r < o->ranks; ++r) oob_receive(o->link[r], to + (size_t)r * bytes, bytes);
  for (int r = 1; r < o->ranks; ++r) oob_send(o->link[r], to, bytes * (size_t)o->ranks);
}

static inline void oob_maximum(const oob* o, double* values, long n) {
  size_t bytes = (size_t)n * sizeof *values;
  double* all = (double*)host_bytes(bytes * (size_t)o->ranks);
  oob_all_gather(o, values, bytes, all);
  for (int r = 0; r < o->ranks; ++r)
    for (long i = 0; i < n; ++i) {
      double value = all[(long)r * n + i];
      values[i] = value > values[i] ? value : values[i];
    }
  free(all);
}

#endif
