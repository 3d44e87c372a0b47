/* Distributed arrays that several files share. */
#ifndef SHARED_H
#define SHARED_H

#define SHARED 17
#pragma xmp nodes shared_p(*)
#pragma xmp template shared_t(0 : SHARED - 1)
#pragma xmp distribute shared_t(block) onto shared_p

extern long shared_a[SHARED][2];
__attribute__((unused)) static int own_of_header[SHARED];
#pragma xmp align shared_a[i][*] with shared_t(i)
#pragma xmp align own_of_header[i] with shared_t(i)
#pragma xmp shadow shared_a[1 : 0][0]

extern struct shared_s {
  int count;
  long v[SHARED][2];
} shared_s;
#pragma xmp align shared_s.v[i][*] with shared_t(i)
#pragma xmp shadow shared_s.v[1][0]

/* A template that one file fixes for all files. */
#pragma xmp template shared_later( :)
#pragma xmp distribute shared_later(block) onto shared_p
extern long shared_grown[SHARED][2];
#pragma xmp align shared_grown[i][*] with shared_later(i)
void fix_shared(int n);

long sum_of_header(void);

#endif
