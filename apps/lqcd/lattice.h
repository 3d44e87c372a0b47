/* The lattice: its size, the layout of a field in memory, and the numbers of the Wilson-Dirac operator.
 *
 * A spinor has 24 doubles per site, a link 18: spin (or row), colour (or column), real and imaginary part;
 * the last varies fastest. They are stored site by site or, with -DROWS, component by component in each
 * row of x, so that neighbouring threads of a GPU read neighbouring words. AT(x, k) is element k of the
 * site x of a row; a row of spinors has the extents OUTER and INNER. */
#ifndef LQCD_LATTICE_H
#define LQCD_LATTICE_H

#ifndef NX
#ifndef EDGE
#define EDGE 16
#endif
#define NX EDGE
#define NY EDGE
#define NZ EDGE
#define NT EDGE
#endif

/* Processes along t and z. */
#ifndef PT
#define PT 1
#endif
#ifndef PZ
#define PZ 1
#endif
#if NT % PT || NZ % PZ
#error "PT must divide NT, and PZ must divide NZ"
#endif

/* Width of the halo along t and z; a direction with one process may wrap around, or have a halo, too. */
#if PT > 1
#define HT 1
#elif !defined HT
#define HT 0
#endif
#if PZ > 1
#define HZ 1
#elif !defined HZ
#define HZ 0
#endif

#define SPINOR 24
#define LINK 18
#ifdef ROWS
#define ROW(n) [n][NX]
#define AT(x, k) [k][x]
#define OUTER SPINOR
#define INNER NX
#define LAYOUT "rows"
#else
#define ROW(n) [NX][n]
#define AT(x, k) [x][k]
#define OUTER NX
#define INNER SPINOR
#define LAYOUT "sites"
#endif

#define KAPPA 0.15
#define ENORM 1e-16 /* of |r|^2 / |b|^2 */
#define MOST_ITERATIONS 1000

#define SITES ((double)NX * NY * NZ * NT)
#define FLOP_HOP 1392 /* per site */
#define FLOP_ITERATION (2 * FLOP_HOP + 11 * SPINOR)
#define BYTES_HOP 960 /* per site: 4 links and a spinor read, a spinor written */

#endif
