! The hop of lattice QCD in Fortran, linked with C: hop.f90 applies H, as xacc.c does, to the links and the random
! spinor that fields.c makes, and prints a number of all bits of the result.
!
!   peerway cc -c -O3 -DEDGE=8 fields.c && peerway fc -cpp -O3 -DEDGE=8 hop.f90 fields.o -o hop
!   peerway run -n 2 -- ./hop
!
! Its arithmetic is that of hop.h, operation by operation, so its bits are those of the program in C. The first
! index of a spinor is that of its real and imaginary part, then come its colours and its four spins; a link
! has its columns before its rows.
#ifndef EDGE
#define EDGE 16
#endif

! What is done at one site. `h` has the two spins that a link multiplies, `g` these times the link.
module spinors
  implicit none
  integer, parameter :: dp = kind(1d0)
contains
  ! h = a + b, and with factors -1, i and -i of b
  pure subroutine plus(h, a, b)
    real(dp), intent(out) :: h(2, 3)
    real(dp), intent(in) :: a(2, 3), b(2, 3)
    integer :: c
    do c = 1, 3
      h(1, c) = a(1, c) + b(1, c)
      h(2, c) = a(2, c) + b(2, c)
    end do
  end subroutine plus

  pure subroutine minus(h, a, b)
    real(dp), intent(out) :: h(2, 3)
    real(dp), intent(in) :: a(2, 3), b(2, 3)
    integer :: c
    do c = 1, 3
      h(1, c) = a(1, c) - b(1, c)
      h(2, c) = a(2, c) - b(2, c)
    end do
  end subroutine minus

  pure subroutine plus_i(h, a, b)
    real(dp), intent(out) :: h(2, 3)
    real(dp), intent(in) :: a(2, 3), b(2, 3)
    integer :: c
    do c = 1, 3
      h(1, c) = a(1, c) - b(2, c)
      h(2, c) = a(2, c) + b(1, c)
    end do
  end subroutine plus_i

  pure subroutine minus_i(h, a, b)
    real(dp), intent(out) :: h(2, 3)
    real(dp), intent(in) :: a(2, 3), b(2, 3)
    integer :: c
    do c = 1, 3
      h(1, c) = a(1, c) + b(2, c)
      h(2, c) = a(2, c) - b(1, c)
    end do
  end subroutine minus_i

  ! sum = sum + f b, for the factors 1, -1, i and -i
  pure subroutine add(sum, b)
    real(dp), intent(inout) :: sum(2, 3)
    real(dp), intent(in) :: b(2, 3)
    integer :: c
    do c = 1, 3
      sum(1, c) = sum(1, c) + b(1, c)
      sum(2, c) = sum(2, c) + b(2, c)
    end do
  end subroutine add

  pure subroutine subtract(sum, b)
    real(dp), intent(inout) :: sum(2, 3)
    real(dp), intent(in) :: b(2, 3)
    integer :: c
    do c = 1, 3
      sum(1, c) = sum(1, c) - b(1, c)
      sum(2, c) = sum(2, c) - b(2, c)
    end do
  end subroutine subtract

  pure subroutine add_i(sum, b)
    real(dp), intent(inout) :: sum(2, 3)
    real(dp), intent(in) :: b(2, 3)
    integer :: c
    do c = 1, 3
      sum(1, c) = sum(1, c) - b(2, c)
      sum(2, c) = sum(2, c) + b(1, c)
    end do
  end subroutine add_i

  pure subroutine subtract_i(sum, b)
    real(dp), intent(inout) :: sum(2, 3)
    real(dp), intent(in) :: b(2, 3)
    integer :: c
    do c = 1, 3
      sum(1, c) = sum(1, c) + b(2, c)
      sum(2, c) = sum(2, c) - b(1, c)
    end do
  end subroutine subtract_i

  ! h = 2 a
  pure subroutine twice(h, a)
    real(dp), intent(out) :: h(2, 3)
    real(dp), intent(in) :: a(2, 3)
    integer :: c
    do c = 1, 3
      h(1, c) = 2*a(1, c)
      h(2, c) = 2*a(2, c)
    end do
  end subroutine twice

  ! the third row of a link, or column of its adjoint: the conjugate cross product of the others
  pure subroutine complete(m)
    real(dp), intent(inout) :: m(2, 3, 3)
    integer :: d, a, b
    do d = 1, 3
      a = mod(d, 3) + 1
      b = mod(d + 1, 3) + 1
      m(1, d, 3) = m(1, a, 1)*m(1, b, 2) - m(2, a, 1)*m(2, b, 2) - m(1, b, 1)*m(1, a, 2) + m(2, b, 1)*m(2, a, 2)
      m(2, d, 3) = m(1, b, 1)*m(2, a, 2) + m(2, b, 1)*m(1, a, 2) - m(1, a, 1)*m(2, b, 2) - m(2, a, 1)*m(1, b, 2)
    end do
  end subroutine complete

  ! g = U h, by rows of U
  pure subroutine times_link(g, u, h)
    real(dp), intent(out) :: g(2, 3, 2)
    real(dp), intent(in) :: u(2, 3, 3), h(2, 3, 2)
    real(dp) :: m(2, 3, 3)
    integer :: c, d, j
    do c = 1, 2
      do d = 1, 3
        m(1, d, c) = u(1, d, c)
        m(2, d, c) = u(2, d, c)
      end do
    end do
    call complete(m)
    do j = 1, 2
      do c = 1, 3
        g(1, c, j) = m(1, 1, c)*h(1, 1, j) - m(2, 1, c)*h(2, 1, j) + m(1, 2, c)*h(1, 2, j) - &
          m(2, 2, c)*h(2, 2, j) + m(1, 3, c)*h(1, 3, j) - m(2, 3, c)*h(2, 3, j)
        g(2, c, j) = m(1, 1, c)*h(2, 1, j) + m(2, 1, c)*h(1, 1, j) + m(1, 2, c)*h(2, 2, j) + &
          m(2, 2, c)*h(1, 2, j) + m(1, 3, c)*h(2, 3, j) + m(2, 3, c)*h(1, 3, j)
      end do
    end do
  end subroutine times_link

  ! g = U**dagger h, by columns of U
  pure subroutine times_adjoint(g, u, h)
    real(dp), intent(out) :: g(2, 3, 2)
    real(dp), intent(in) :: u(2, 3, 3), h(2, 3, 2)
    real(dp) :: m(2, 3, 3)
    integer :: c, d, j
    do c = 1, 2
      do d = 1, 3
        m(1, d, c) = u(1, c, d)
        m(2, d, c) = u(2, c, d)
      end do
    end do
    call complete(m)
    do j = 1, 2
      do c = 1, 3
        g(1, c, j) = m(1, 1, c)*h(1, 1, j) + m(2, 1, c)*h(2, 1, j) + m(1, 2, c)*h(1, 2, j) + &
          m(2, 2, c)*h(2, 2, j) + m(1, 3, c)*h(1, 3, j) + m(2, 3, c)*h(2, 3, j)
        g(2, c, j) = m(1, 1, c)*h(2, 1, j) - m(2, 1, c)*h(1, 1, j) + m(1, 2, c)*h(2, 2, j) - &
          m(2, 2, c)*h(1, 2, j) + m(1, 3, c)*h(2, 3, j) - m(2, 3, c)*h(1, 3, j)
      end do
    end do
  end subroutine times_adjoint
end module spinors

module lattice_fields
  use spinors
  use, intrinsic :: iso_c_binding, only: c_int, c_double
  implicit none
  integer, parameter :: n = EDGE, spinor = 24, link = 18
  real(dp), parameter :: kappa = 0.15_dp
!$xmp nodes processes(1, *)
!$xmp template lattice(n, n)
!$xmp distribute lattice(block, block) onto processes
  real(dp) :: from(spinor, n, n, n, n), to(spinor, n, n, n, n), u(link, n, n, n, n, 4)
!$xmp align (*, *, *, k, l) with lattice(k, l) :: from, to
!$xmp align u(*, *, *, k, l, *) with lattice(k, l)
!$xmp shadow from(0, 0, 0, 1, 1)
!$xmp shadow u(0, 0, 0, 1:0, 1:0, 0)

  interface ! fields.c, whose sites and elements count from 0
    function random_element(t, z, y, x, k) bind(C)
      import c_int, c_double
      integer(c_int), value :: t, z, y, x, k
      real(c_double) :: random_element
    end function random_element
    function link_element(mu, t, z, y, x, k) bind(C)
      import c_int, c_double
      integer(c_int), value :: mu, t, z, y, x, k
      real(c_double) :: link_element
    end function link_element
  end interface
contains
  subroutine load
    integer :: x, y, z, t, k, mu
!$xmp loop (z, t) on lattice(z, t)
    do t = 1, n
      do z = 1, n
        do y = 1, n
          do x = 1, n
            do k = 1, spinor
              from(k, x, y, z, t) = random_element(t - 1, z - 1, y - 1, x - 1, k - 1)
            end do
            do mu = 1, 4
              do k = 1, link
                u(k, x, y, z, t, mu) = link_element(mu - 1, t - 1, z - 1, y - 1, x - 1, k - 1)
              end do
            end do
          end do
        end do
      end do
    end do
  end subroutine load

  ! to = H from
  subroutine hop
    integer :: x, y, z, t, xp, xm, yp, ym, k, c, s, other, flipped
    real(dp) :: sum(2, 3, 4), h(2, 3, 2), g(2, 3, 2)
!$xmp reflect (from) width(0, 0, 0, /periodic/1, /periodic/1) orthogonal acc
!$xmp loop (z, t) on lattice(z, t)
!$acc parallel loop collapse(4) present(from, to, u) private(sum, h, g, xp, xm, yp, ym, k, c, s, other, flipped)
    do t = 1, n
      do z = 1, n
        do y = 1, n
          do x = 1, n
            xp = mod(x, n) + 1
            xm = mod(x + n - 2, n) + 1
            yp = mod(y, n) + 1
            ym = mod(y + n - 2, n) + 1
            do s = 1, 4
              do c = 1, 3
                sum(1, c, s) = 0
                sum(2, c, s) = 0
              end do
            end do
            ! from x + 1
            call plus_i(h(1, 1, 1), from(1, xp, y, z, t), from(19, xp, y, z, t))
            call plus_i(h(1, 1, 2), from(7, xp, y, z, t), from(13, xp, y, z, t))
            call times_link(g, u(1, x, y, z, t, 1), h)
            call add(sum(1, 1, 1), g(1, 1, 1))
            call add(sum(1, 1, 2), g(1, 1, 2))
            call subtract_i(sum(1, 1, 3), g(1, 1, 2))
            call subtract_i(sum(1, 1, 4), g(1, 1, 1))
            ! from x - 1
            call minus_i(h(1, 1, 1), from(1, xm, y, z, t), from(19, xm, y, z, t))
            call minus_i(h(1, 1, 2), from(7, xm, y, z, t), from(13, xm, y, z, t))
            call times_adjoint(g, u(1, xm, y, z, t, 1), h)
            call add(sum(1, 1, 1), g(1, 1, 1))
            call add(sum(1, 1, 2), g(1, 1, 2))
            call add_i(sum(1, 1, 3), g(1, 1, 2))
            call add_i(sum(1, 1, 4), g(1, 1, 1))
            ! from y + 1
            call plus(h(1, 1, 1), from(1, x, yp, z, t), from(19, x, yp, z, t))
            call minus(h(1, 1, 2), from(7, x, yp, z, t), from(13, x, yp, z, t))
            call times_link(g, u(1, x, y, z, t, 2), h)
            call add(sum(1, 1, 1), g(1, 1, 1))
            call add(sum(1, 1, 2), g(1, 1, 2))
            call subtract(sum(1, 1, 3), g(1, 1, 2))
            call add(sum(1, 1, 4), g(1, 1, 1))
            ! from y - 1
            call minus(h(1, 1, 1), from(1, x, ym, z, t), from(19, x, ym, z, t))
            call plus(h(1, 1, 2), from(7, x, ym, z, t), from(13, x, ym, z, t))
            call times_adjoint(g, u(1, x, ym, z, t, 2), h)
            call add(sum(1, 1, 1), g(1, 1, 1))
            call add(sum(1, 1, 2), g(1, 1, 2))
            call add(sum(1, 1, 3), g(1, 1, 2))
            call subtract(sum(1, 1, 4), g(1, 1, 1))
            ! from z + 1
            call plus_i(h(1, 1, 1), from(1, x, y, z + 1, t), from(13, x, y, z + 1, t))
            call minus_i(h(1, 1, 2), from(7, x, y, z + 1, t), from(19, x, y, z + 1, t))
            call times_link(g, u(1, x, y, z, t, 3), h)
            call add(sum(1, 1, 1), g(1, 1, 1))
            call add(sum(1, 1, 2), g(1, 1, 2))
            call subtract_i(sum(1, 1, 3), g(1, 1, 1))
            call add_i(sum(1, 1, 4), g(1, 1, 2))
            ! from z - 1
            call minus_i(h(1, 1, 1), from(1, x, y, z - 1, t), from(13, x, y, z - 1, t))
            call plus_i(h(1, 1, 2), from(7, x, y, z - 1, t), from(19, x, y, z - 1, t))
            call times_adjoint(g, u(1, x, y, z - 1, t, 3), h)
            call add(sum(1, 1, 1), g(1, 1, 1))
            call add(sum(1, 1, 2), g(1, 1, 2))
            call add_i(sum(1, 1, 3), g(1, 1, 1))
            call subtract_i(sum(1, 1, 4), g(1, 1, 2))
            ! from t + 1
            call twice(h(1, 1, 1), from(13, x, y, z, t + 1))
            call twice(h(1, 1, 2), from(19, x, y, z, t + 1))
            call times_link(g, u(1, x, y, z, t, 4), h)
            call add(sum(1, 1, 3), g(1, 1, 1))
            call add(sum(1, 1, 4), g(1, 1, 2))
            ! from t - 1
            call twice(h(1, 1, 1), from(1, x, y, z, t - 1))
            call twice(h(1, 1, 2), from(7, x, y, z, t - 1))
            call times_adjoint(g, u(1, x, y, z, t - 1, 4), h)
            call add(sum(1, 1, 1), g(1, 1, 1))
            call add(sum(1, 1, 2), g(1, 1, 2))
            do s = 1, 4
              other = mod(s + 1, 4) + 1
              do c = 1, 3
                k = ((s - 1)*3 + c - 1)*2 + 1
                flipped = ((other - 1)*3 + c - 1)*2 + 1
                to(k, x, y, z, t) = from(flipped, x, y, z, t) - kappa*sum(1, c, other)
                to(k + 1, x, y, z, t) = from(flipped + 1, x, y, z, t) - kappa*sum(2, c, other)
              end do
            end do
          end do
        end do
      end do
    end do
  end subroutine hop
end module lattice_fields

program lqcd_hop
  use lattice_fields
  use, intrinsic :: iso_fortran_env, only: int64, error_unit
  implicit none
  integer :: x, y, z, t, k, turn, repeat, status
  integer(int64) :: bits, start, now, rate
  character(20) :: word
  call get_command_argument(1, word, status=status)
  repeat = 1
  if (status == 0) read (word, *) repeat
  call load
!$acc enter data copyin(from, u) create(to)
!$xmp reflect (u) width(0, 0, 0, /periodic/1:0, /periodic/1:0, 0) orthogonal acc
  call hop
!$xmp barrier acc
  call system_clock(start, rate)
  do turn = 1, repeat
    call hop
  end do
!$xmp barrier acc
  call system_clock(now)
!$acc exit data copyout(to) delete(from, u)
  bits = 0
!$xmp loop (z, t) on lattice(z, t) reduction(ieor: bits)
  do t = 1, n
    do z = 1, n
      do y = 1, n
        do x = 1, n
          do k = 1, spinor
            turn = modulo(k - 1 + 5*(x - 1) + 11*(y - 1) + 23*(z - 1) + 37*(t - 1), 64)
            bits = ieor(bits, ishftc(transfer(to(k, x, y, z, t), bits), turn))
          end do
        end do
      end do
    end do
  end do
!$xmp task on processes(1, 1)
  print '(a, z16.16)', 'bits ', bits
  write (error_unit, '(f0.6, a)') real(now - start, dp)/rate/repeat, ' s a hop'
!$xmp end task
end program lqcd_hop
