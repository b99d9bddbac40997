"""roce.py - RoCEv2 packets made by hand, independently of the program's own code: to send it what it should turn away.

A packet here is what a UDP datagram carries: BTH, extension headers, payload, ICRC. The ICRC covers addresses and
ports, so packets are made for the socket that sends them: unconnected and never fragmented, for which the kernel sends
IP identification 0."""

import ctypes
import socket
import struct
import zlib

IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2
UC_WRITE_ONLY = 0x2A


def sender(address, port=0):
    """A socket whose packets have the IP header that icrc() assumes."""
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
    udp.bind((address, port))
    return udp


def icrc(source, to, body, ip_id=0):
    """Of BTH to payload, on their way from one (address, port) to another; fields that change on the way are ones."""
    length = 8 + len(body) + 4
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0xFF, 20 + length, ip_id, 0x4000, 0xFF, 17, 0xFFFF,
                     socket.inet_aton(source[0]), socket.inet_aton(to[0]))
    udp = struct.pack("!HHHH", source[1], to[1], length, 0xFFFF)
    masked = body[:4] + b"\xff" + body[5:]
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + ip + udp + masked))


def seal(udp, to, body):
    return body + icrc(udp.getsockname(), to, body)


def bth(opcode, qpn, psn, pad=0):
    return struct.pack("!BBHII", opcode, pad << 4, 0xFFFF, qpn, psn)


def reth(va, rkey, length):
    return struct.pack("!QII", va, rkey, length)


def write_only(qpn, psn, va, rkey, payload):
    return bth(UC_WRITE_ONLY, qpn, psn) + reth(va, rkey, len(payload)) + payload


def listener(*addresses):
    """A socket that hears every IPv4 packet on the loopback interface to one of these addresses, and nothing else,
    however busy the interface is. Needs CAP_NET_RAW: PermissionError without."""
    ETH_P_IP, SO_ATTACH_FILTER, SO_RCVBUFFORCE = 0x0800, 26, 33
    LOAD, JUMP_IF_EQUAL, RETURN, DESTINATION = 0x20, 0x15, 0x06, 16
    code = [(LOAD, 0, 0, DESTINATION)]
    for i, address in enumerate(addresses):
        last = i == len(addresses) - 1
        code.append((JUMP_IF_EQUAL, len(addresses) - 1 - i, 1 if last else 0,
                     int.from_bytes(socket.inet_aton(address), "big")))
    code += [(RETURN, 0, 0, 0xFFFF), (RETURN, 0, 0, 0)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in code))
    heard = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)  # hears nothing before it is bound
    heard.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", len(code), ctypes.addressof(program)))
    heard.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)  # root's, like the socket
    heard.bind(("lo", ETH_P_IP))
    return heard


def datagram(packet):
    """(source address, destination port, what the datagram carries) of an IPv4 packet with UDP."""
    header = (packet[0] & 15) * 4
    return socket.inet_ntoa(packet[12:16]), struct.unpack("!H", packet[header + 2:header + 4])[0], packet[header + 8:]
