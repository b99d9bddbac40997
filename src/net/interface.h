/* interface.h - network interfaces: which one has an address, and where in the machine it sits.
 *
 * Threads:   no state. Not for data threads. */
#ifndef SL_NET_INTERFACE_H
#define SL_NET_INTERFACE_H

#include <net/if.h>
#include <stdbool.h>

/* The interface of this host that has the numeric address; all of 127.0.0.0/8 is lo's. */
bool sl_net_interface(const char *address, char name[IF_NAMESIZE]);

/* The device below a VLAN, bond or the like (the first, where there are several); its own name
 * where there is none. root: see base/sysfile.h. */
void sl_net_interface_device(const char *root, const char *name, char device[IF_NAMESIZE]);

/* Where /sys/class/net/DEVICE has what belongs to its slot (numa_node, msi_irqs): "device", or
 * above it, where what the slot holds is a virtio device. */
const char *sl_net_interface_folder(const char *root, const char *device);

/* The NUMA node that the device is attached to; -1: none, or unknown. */
int sl_net_interface_node(const char *root, const char *name);

#endif
