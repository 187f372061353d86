"""The share of its memory that may be reserved on one device: the slot of this room (registry.pxd).

A share set for one device holds until it is set again, for that device or for all.
"""

cdef struct Fraction:
    bint is_set
    int changes                 # _settings.fraction_changes when it was set
    double share


# NULL where the setting of all devices holds.
cdef Fraction* own_fraction(int device) except? NULL:
    cdef Fraction* own = <Fraction*>device_slot(device, config_slot)
    if own == NULL or not own.is_set or own.changes != _settings.fraction_changes:
        return NULL
    return own


def has_own_fractions():
    """Return whether any device has a share of its own."""
    return any([own_fraction(device) != NULL
                for device in range(-HOST_DEVICES, MAX_DEVICES - HOST_DEVICES)])


def fraction_of(int device):
    """Return the share of its memory that may be reserved on a device."""
    cdef Fraction* own = own_fraction(device)
    return _settings.current().per_process_memory_fraction if own == NULL else own.share


def set_fraction(int device, double share):
    """Set the share of one device, which has to be open."""
    with _settings.unchanged():
        _settings.current()
        (<Fraction*>device_slot(device, config_slot))[0] = Fraction(
            True, _settings.fraction_changes, share)
        _settings.tell()


def in_force_on(int device):
    """Return a dict from every option's name to its :class:`Setting` on a device."""
    settings = _settings.current().in_force()
    if own_fraction(device) != NULL:
        settings[_settings.FRACTION] = _settings.Setting(
            fraction_of(device), _settings.FOR_ONE_DEVICE)
    return settings


cdef Slot slot
slot.nbytes = slot.kept_nbytes = sizeof(Fraction)
cdef int config_slot = register_slot(&slot)
