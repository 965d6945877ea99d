import BackendClient
import TidingsModels

/// Who uses the device.
///
/// A platform's push names a handle and no user. So that nothing which is under way to one user is shown to the next, the
/// handle changes with the user.
extension DeviceDaemon {
    /// Registers the device for a user, and remembers the login. Waits for the handle.
    ///
    /// - Throws: ``BackendError`` with the back end's status when the login is refused; nothing has changed then.
    public func login(user: String, password: String, tags: [String] = []) async throws {
        guard configuration.backend != nil else { throw DaemonFailure("No app back end is configured.") }
        _ = try await currentHandle()
        // In the queue as a whole: a registration beside it would else send the same once more.
        try await inQueue { daemon in
            let login = DeviceState.Login(user: user, password: password)
            if let before = daemon.state.login, before.user != user {
                try await daemon.change(from: before, to: login, tags)
            } else {
                try await daemon.logIn(login, tags)
            }
        }
        try await fetchAwaiting()
    }

    private func logIn(_ login: DeviceState.Login, _ tags: [String]) async throws {
        let before = (state.login, state.loginTags)
        state.login = login
        state.loginTags = tags
        do {
            try save()
            try await registerUserNow(force: true)
        } catch {
            (state.login, state.loginTags) = before
            // The back end may have taken half of it: who was logged in before is registered anew.
            state.registration = nil
            try save()
            registrationFailed(error)
            if state.login != nil { scheduleRegistration(after: .zero) }
            throw error
        }
    }

    /// Registers the next user under a handle of their own, then gives the old handle back.
    private func change(
        from before: DeviceState.Login,
        to next: DeviceState.Login,
        _ tags: [String]
    ) async throws {
        let old = (channelID: state.channelID, handle: state.handle, registration: state.registration)
        let channel = try await newChannel()
        hold()
        (state.channelID, state.handle, state.registration) = (channel.id, channel.handle, nil)
        do { try await logIn(next, tags) } catch {
            (state.channelID, state.handle) = (old.channelID, old.handle)
            state.registration = old.registration
            try save()
            giveBack(channel.id)
            await release()
            throw error
        }
        state.formerChannelIDs.removeAll { $0 == channel.id }
        if let former = old.channelID { state.formerChannelIDs.append(former) }
        try save()
        emitHandle()
        // The hub learns of the new handle before the old one ends; a failure is tried again.
        do { try await subscribeNow(force: false) } catch { scheduleRegistration(after: .zero) }
        if let registration = old.registration,
            registration.style == DaemonConfiguration.RegistrationStyle.handle.rawValue
        {
            try? await backendClient(before)?.unregister(id: registration.id)
        }
        if let former = old.channelID { giveBack(former) }
        await release()
    }

    /// Deletes the registration at the back end and forgets the login, also when the back end cannot be asked.
    public func logout() async throws {
        // Behind a registration that is under way, which would otherwise land afterwards.
        let failure: BackendError? = try await inQueue { daemon in
            var failure: BackendError?
            if let registration = daemon.state.registration, let backend = daemon.backendClient() {
                do { try await backend.unregister(id: registration.id) } catch let error as BackendError
                    where error.status != 404
                {
                    failure = error
                } catch is BackendError {
                    // Gone already.
                }
            }
            let wasLoggedIn = daemon.state.login != nil
            daemon.state.login = nil
            daemon.state.loginTags = []
            daemon.state.registration = nil
            // Also what the back end could not be told: nothing more for this user comes through the old handle.
            if wasLoggedIn { try daemon.renewHandle() } else { try daemon.save() }
            return failure
        }
        emit(DeviceEvent("logged_out"))
        if let failure { throw failure }
    }
}
