// Neighbouring elements that one instruction loads or stores.
#pragma once

template <class T, int N> struct alignas(sizeof(T) * N) Vector { T item[N]; };
