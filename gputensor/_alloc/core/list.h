// The lists of the allocator: records that carry their own links, so that no list allocates.
//
// A row is linked by `next`, and by `previous` where the record has it; a chain by `link_next`
// alone; a list of bins or holes by `link_next` and `link_previous`. A queue has a head and a tail.
#pragma once
#include <type_traits>

template <class T, class = void> struct gt_has_previous : std::false_type {};
template <class T>
struct gt_has_previous<T, std::void_t<decltype(T::previous)>> : std::true_type {};

template <class T> struct gt_list {
    struct iterator {
        T* at;
        T* T::*next;
        T* operator*() const { return at; }
        iterator& operator++() { at = at->*next; return *this; }
        bool operator!=(const iterator& other) const { return at != other.at; }
    };
    T* head;
    T* T::*next;
    iterator begin() const { return {head, next}; }
    iterator end() const { return {nullptr, next}; }
};

// A loop continues from its current record: its body may add records, but not drop that one.
template <class T> gt_list<T> each(T* head) { return {head, &T::next}; }
template <class T> gt_list<T> linked(T* head) { return {head, &T::link_next}; }

template <class T> void row_push(T** head, T* record) {
    record->next = *head;
    if constexpr (gt_has_previous<T>::value) {
        record->previous = nullptr;
        if (*head) { (*head)->previous = record; }
    }
    *head = record;
}
template <class T> void row_remove(T** head, T* record) {
    if constexpr (gt_has_previous<T>::value) {
        if (record->next) { record->next->previous = record->previous; }
        if (record->previous) { head = &record->previous->next; }
    } else {
        while (*head != record) { head = &(*head)->next; }
    }
    *head = record->next;
}
// The first record, or null. Needs a row without `previous`.
template <class T> T* row_pop(T** head) {
    T* record = *head;
    if (record) { *head = record->next; }
    return record;
}

template <class T> void link_push(T** head, T* record) {
    record->link_previous = nullptr;
    record->link_next = *head;
    if (*head) { (*head)->link_previous = record; }
    *head = record;
}
// `head` may be null for a record that is not the first.
template <class T> void link_remove(T** head, T* record) {
    if (record->link_next) { record->link_next->link_previous = record->link_previous; }
    if (record->link_previous) { head = &record->link_previous->link_next; }
    *head = record->link_next;
    record->link_next = record->link_previous = nullptr;
}

template <class T> void chain_push(T** head, T* record) {
    record->link_next = *head;
    *head = record;
}
template <class T> T* chain_pop(T** head) {
    T* record = *head;
    if (record) {
        *head = record->link_next;
        record->link_next = nullptr;
    }
    return record;
}

template <class Q, class T> void queue_append(Q* queue, T* record) {
    record->next = nullptr;
    *(queue->head ? &queue->tail->next : &queue->head) = record;
    queue->tail = record;
}
